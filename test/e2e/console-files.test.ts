/** The files of a session in the console: its workspace (C7, U6). */
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { useConsole } from '../support/use-console.ts';

const system = useConsole();
const HOSTILE = '<img src=x onerror=alert(1)>\u202Egpj.html';

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[C7] the workspace is listed, a file of it is downloaded, and deleted after a question', async () => {
    const id = await system.newSession();
    const put = async (path: string, content: string): Promise<void> =>
      void (await system.call('PUT', `/agent/session/${id}/files/${encodeURIComponent(path)}`, content));
    const { page, faults } = await system.open(`#/sessions/${id}?panel=files`);
    const panel = page.getByRole('dialog');
    await panel.getByText('No files.').waitFor();
    expect(await panel.getByText('Workspace').count()).toBe(0);
    await put('table.csv', 'a,b\n1,2\n');
    await put(HOSTILE, 'x');
    await page.reload();
    await panel.getByText('table.csv').waitFor();
    expect(await panel.locator('li').allInnerTexts()).toEqual([
      expect.stringContaining('<img src=x onerror=alert(1)>[U+202E]gpj.html') as string,
      expect.stringMatching(/^table\.csv\s+now · 8 B/) as string,
    ]);
    const download = page.waitForEvent('download');
    await panel.getByRole('button', { name: 'Download table.csv' }).click();
    const saved = await download;
    expect([saved.suggestedFilename(), await text(await saved.createReadStream())]).toEqual([
      'table.csv',
      'a,b\n1,2\n',
    ]);
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.message());
      void (asked.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    const remove = panel.getByRole('button', { name: 'Delete table.csv' });
    await remove.click();
    await remove.click();
    await expect.poll(() => panel.locator('li').count()).toBe(1);
    expect(asked).toEqual(['Delete table.csv?', 'Delete table.csv?']);
    const { files } = await system.call<{ files: { path: string }[] }>('GET', `/agent/session/${id}/files`);
    expect(files.map(({ path }) => path)).toEqual([HOSTILE]);
    expect(faults).toEqual([]);
  });

  test('[C7] [U6] a shared view shows no workspace, and no error', async () => {
    const id = await system.newSession();
    await system.call('PUT', `/agent/session/${id}/files/a`, 'x');
    const { token } = await system.call<{ token: string }>('POST', `/agent/session/${id}/tokens`, { scopes: ['view'] });
    const { page, faults } = await system.open(`#/sessions/${id}?panel=files&token=${token}`);
    await page.getByRole('dialog').getByText('No files.').waitFor();
    expect(faults).toEqual([]);
  });
});
