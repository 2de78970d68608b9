/** `node make-snapshot.ts <state folder>`: creates the snapshot of the embedded Python, for `python-snapshot.ts`. */
import { StateFolder } from '../../state.ts';
import { WasmSandbox } from '../../sandbox/wasm.ts';

const [folder = ''] = process.argv.slice(2);
const sandbox = new WasmSandbox({
  state: new StateFolder(folder, { now: Date.now, onSetAside: () => undefined }),
  warm: 0,
  warn: (message) => void process.stderr.write(`${message}\n`),
});
await sandbox.probe();
const held = await sandbox.hold('python3');
held.release();
await sandbox.close();
