import { describeSandbox } from '../support/sandbox-contract.ts';

describeSandbox('docker');
