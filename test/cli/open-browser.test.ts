/** `npm start -- --open` asks the desktop for a browser, and says so if there is none (U1). */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { lacks } from '../support/programs.ts';
import { folderOfFile } from './scene.ts';

const folder = folderOfFile();

/** @param browser the value of BROWSER, which Linux desktops use. @param then what the program does afterwards */
async function open(browser: string, then = ''): Promise<string> {
  const { DISPLAY: _display, WAYLAND_DISPLAY: _wayland, ...env } = process.env;
  const program = `import { openBrowser } from './cli/system/open-browser.ts';
    const { promise: failed, resolve: fail } = Promise.withResolvers();
    await openBrowser('http://127.0.0.1:1', fail);
    ${then}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...env, BROWSER: browser },
  });
  return stdout;
}

describe.skipIf(process.platform !== 'linux')('[U1] a browser on Linux', () => {
  // xdg-open is a script of the shell.
  test.skipIf(lacks('grep', 'sed'))('opens the address', async () => {
    const opened = join(folder, 'opened');
    const browser = join(folder, 'browser');
    writeFileSync(browser, `#!/bin/sh\necho "$@" > ${opened}\n`, { mode: 0o755 });
    await open(browser);
    await expect.poll(() => readFileSync(opened, { encoding: 'utf8', flag: 'a+' })).toBe('http://127.0.0.1:1/\n');
  });

  test('that is missing is reported, with what to do', async () => {
    const wait = 'const alive = setInterval(() => {}, 1000); console.log(await failed); clearInterval(alive);';
    expect(await open(join(folder, 'nowhere'), wait)).toMatch(
      /^Could not open a browser \(.*\)\. Open http:\/\/127\.0\.0\.1:1\/ yourself\.\n$/,
    );
  });
});
