import { describeAbuse } from '../support/abuse-table.ts';

describeAbuse('docker');
