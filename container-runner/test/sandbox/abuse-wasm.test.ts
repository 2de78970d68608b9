import { describeAbuse } from '../support/abuse-table.ts';

describeAbuse('wasm');
