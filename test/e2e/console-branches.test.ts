/** Branches of a conversation, messages into a run, and the list of sessions, in the console (C4, C5, C6, U2, U4). */
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { approveIn, axeViolations, conversationOf, focused, say, waitForAction } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const system = useConsole();

interface ListedRun {
  readonly run_id: string;
  readonly parent_run: string | null;
  readonly retry_of?: string;
}

/** Oldest first. */
async function runsOf(id: string): Promise<readonly ListedRun[]> {
  return (await system.call<{ runs: ListedRun[] }>('GET', `/agent/session/${id}/runs`)).runs;
}

/** A session with these messages and their answers. @returns its id */
async function sessionWith(...contents: readonly string[]): Promise<string> {
  const id = await system.newSession();
  for (const content of contents) await system.send(id, content);
  return id;
}

/** The messages that the conversation shows, and their answers. */
function messagesOf(page: Page, author: 'You' | 'Agent'): Locator {
  return conversationOf(page).getByRole('article', { name: author, exact: true });
}

/** The texts of the user's messages. */
async function asked(page: Page): Promise<string[]> {
  return await conversationOf(page).locator('.message-user > :not(header)').allTextContents();
}

function version(page: Page, to: 'Previous' | 'Next'): Locator {
  return conversationOf(page).getByRole('button', { name: `${to} version` });
}

async function showsVersion(page: Page, text: string): Promise<void> {
  await conversationOf(page).getByRole('group', { name: 'Versions' }).getByText(text).waitFor();
}

/** What was sent is accepted: the box can be used and is empty, and no error is shown. */
async function wasAccepted(page: Page): Promise<void> {
  const box = page.getByRole('textbox', { name: 'Message' });
  await expect.poll(() => box.isEditable()).toBe(true);
  expect(await page.locator('.fault').allTextContents()).toEqual([]);
  expect(await box.inputValue()).toBe('');
}

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[C4] an answer is tried again, and both versions can be read', async () => {
    const id = await sessionWith('What is 6 * 7?');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await messagesOf(page, 'Agent').getByText('42').first().waitFor();
    const retry = conversationOf(page).getByRole('button', { name: 'Retry' });
    await retry.focus();
    await page.keyboard.press('Enter');
    await showsVersion(page, '2 of 2');
    await messagesOf(page, 'Agent').getByText('42').first().waitFor();
    await retry.waitFor();
    expect(await focused(page)).toBe('SECTION Conversation');
    const [first, second] = await runsOf(id);
    expect(second).toMatchObject({ parent_run: null, retry_of: first?.run_id });
    expect(await asked(page)).toEqual(['What is 6 * 7?']);

    await version(page, 'Previous').focus();
    await page.keyboard.press('Enter');
    await showsVersion(page, '1 of 2');
    expect(await focused(page)).toBe('BUTTON Previous version');
    expect(page.url()).toContain(`branch=${first?.run_id}`);
    await page.getByText('Another version of the conversation.').waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.reload();
    await showsVersion(page, '1 of 2');
    await version(page, 'Next').focus();
    await page.keyboard.press('Enter');
    await showsVersion(page, '2 of 2');
    expect(await focused(page)).toBe('BUTTON Next version');
    expect(page.url()).not.toContain('branch=');
    expect(faults).toEqual([]);
  });

  test('[C4] an edited message begins a branch; the older one can be read, and goes on', async () => {
    const id = await sessionWith('remember my city is Oslo', 'what is my city');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await messagesOf(page, 'Agent').nth(1).getByText('Oslo').waitFor();
    await conversationOf(page).getByRole('button', { name: 'Edit' }).first().click();
    await page.getByText('Editing a message').waitFor();
    const box = page.getByRole('textbox', { name: 'Message' });
    await expect.poll(async () => await focused(page)).toBe('TEXTAREA Message');
    expect(await box.inputValue()).toBe('remember my city is Oslo');
    expect(await axeViolations(page)).toEqual([]);
    await say(page, 'remember my city is Rome');
    await expect.poll(async () => await asked(page)).toEqual(['remember my city is Rome']);
    await showsVersion(page, '2 of 2');
    await expect.poll(async () => await focused(page)).toBe('TEXTAREA Message');
    expect(await page.getByText('Editing a message').count()).toBe(0);
    await say(page, 'what is my city');
    const rome = ['remember my city is Rome', 'what is my city'];
    await expect.poll(async () => await asked(page)).toEqual(rome);
    await messagesOf(page, 'Agent').nth(1).getByText('Rome').waitFor();
    await page.reload();
    await messagesOf(page, 'Agent').nth(1).getByText('Rome').waitFor();
    expect(await asked(page)).toEqual(rome);

    await version(page, 'Previous').click();
    await messagesOf(page, 'Agent').nth(1).getByText('Oslo').waitFor();
    const oslo = ['remember my city is Oslo', 'what is my city'];
    expect(await asked(page)).toEqual(oslo);
    await say(page, 'what is my city');
    await expect.poll(async () => await asked(page)).toEqual([...oslo, 'what is my city']);
    await messagesOf(page, 'Agent').nth(2).getByText('Oslo').waitFor();
    // It is the newest branch now.
    await expect.poll(() => page.url()).not.toContain('branch=');
    await page.reload();
    await messagesOf(page, 'Agent').nth(2).getByText('Oslo').waitFor();
    expect(await asked(page)).toEqual([...oslo, 'what is my city']);
    expect((await runsOf(id)).map(({ parent_run: parent }) => parent === null)).toEqual([
      true,
      false,
      true,
      false,
      false,
    ]);
    expect(faults).toEqual([]);
  });

  test('[C4] an address with an unknown branch leads to the session', async () => {
    const id = await sessionWith('echo: hello');
    const { page, faults } = await system.open(`#/sessions/${id}?branch=run_none`);
    await page.getByText('unknown_run').waitFor();
    await page.getByRole('button', { name: 'Show the newest version' }).click();
    await expect.poll(async () => await asked(page)).toEqual(['echo: hello']);
    expect(page.url()).not.toContain('branch=');
    expect(await page.locator('.fault').count()).toBe(0);
    expect(await page.title()).toBe('echo: hello · Cortex Edge');
    // It is followed.
    await say(page, 'echo: later');
    await messagesOf(page, 'Agent').nth(1).getByText('later').first().waitFor();
    expect(faults).toEqual([]);
  });

  test('[C4] Escape ends editing, and changes nothing', async () => {
    const id = await sessionWith('What is 6 * 7?');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await page.getByRole('textbox', { name: 'Message' }).fill('not yet');
    await conversationOf(page).getByRole('button', { name: 'Edit' }).click();
    await page.getByText('Editing a message').waitFor();
    await expect.poll(async () => await focused(page)).toBe('TEXTAREA Message');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByText('Editing a message').count()).toBe(0);
    expect(await focused(page)).toBe('TEXTAREA Message');
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('not yet');
    expect(await runsOf(id)).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  test('[C4] a fork is a session of its own, which goes on alone', async () => {
    const id = await sessionWith('remember my city is Oslo', 'echo: later');
    const [first] = await runsOf(id);
    const { page, faults } = await system.open(`#/sessions/${id}/runs/${first?.run_id}`);
    await page.getByRole('button', { name: 'Fork from here' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.hash.startsWith('#/sessions/') && !url.hash.includes(id));
    await expect.poll(async () => await focused(page)).toBe('MAIN main');
    const fork = /ses_[0-9a-f]+/.exec(page.url())?.[0] ?? '';
    await expect.poll(async () => await asked(page)).toEqual(['remember my city is Oslo']);
    await say(page, 'what is my city');
    await messagesOf(page, 'Agent').nth(1).getByText('Oslo').waitFor();
    expect(await runsOf(id)).toHaveLength(2);
    expect(await system.call('GET', `/agent/session/${fork}`)).toMatchObject({
      forked_from: { session_id: id, run_id: first?.run_id },
    });
    expect(faults).toEqual([]);
  });

  test('[C4] one action runs again, in a run of its own', async () => {
    const id = await sessionWith('echo: hello');
    const { page, faults } = await system.open(`#/sessions/${id}?action=1.echo_1`);
    const details = page.getByRole('complementary', { name: 'Action echo_1' });
    await details.getByText('hello').first().waitFor();
    await details.getByRole('button', { name: 'Run again' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/runs\/run_/);
    await waitForAction(page, /echo_1.*completed/);
    const [first, second] = await runsOf(id);
    expect(page.url()).toContain(second?.run_id);
    expect(second?.run_id).not.toBe(first?.run_id);
    await expect.poll(async () => await focused(page)).toBe('MAIN main');
    // Only a message can be sent again.
    const again = messagesOf(page, 'You').filter({ hasText: 'Run the action echo_1 (echo) again.' });
    await again.waitFor();
    expect(await again.getByRole('button').count()).toBe(0);
    for (const name of ['Edit', 'Retry']) {
      await expect.poll(() => conversationOf(page).getByRole('button', { name }).count()).toBe(1);
    }
    expect(faults).toEqual([]);
  });

  test('[C4] an action that needs an approval asks again when it runs again', async () => {
    const id = await system.newSession('careful_assistant');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await say(page, 'compute 13**20 in python');
    await approveIn(page).click();
    await messagesOf(page, 'Agent')
      .getByText(String(13n ** 20n))
      .first()
      .waitFor();
    await page.getByRole('link', { name: /python/ }).click();
    await page.getByRole('button', { name: 'Run again' }).click();
    await approveIn(page).click();
    await waitForAction(page, /python_1.*completed/);
    expect(await runsOf(id)).toHaveLength(2);
    expect(faults).toEqual([]);
  });

  test('[C5] a message that is sent while a run waits is shown at once, and answered by this run', async () => {
    const id = await system.newSession();
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    // Ends when the result is sent; then the model is called again.
    const content = 'use get_location; show progress';
    await system.call('POST', `/agent/session/${id}/message`, { content, tools, stream: false });
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await page.getByRole('textbox', { name: /result/i }).waitFor();
    await say(page, 'What is 6 * 7?');
    const sent = messagesOf(page, 'You').filter({ hasText: 'What is 6 * 7?' });
    await sent.getByText('while it worked').waitFor();
    await wasAccepted(page);
    await expect.poll(async () => await focused(page)).toBe('TEXTAREA Message');
    expect(await page.getByRole('textbox', { name: /result/i }).count()).toBe(1);
    expect(await axeViolations(page)).toEqual([]);
    await page.reload();
    await sent.waitFor();
    await page.getByRole('textbox', { name: /result/i }).fill('Bergen');
    await page.getByRole('button', { name: 'Send result' }).click();
    await messagesOf(page, 'Agent').getByText('42').first().waitFor();
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(await runsOf(id)).toHaveLength(1);
    await page.reload();
    await messagesOf(page, 'Agent').getByText('42').first().waitFor();
    expect(await sent.count()).toBe(1);
    expect(faults).toEqual([]);
  });

  test('[C5] a message that is sent while a run works is answered by this run; the box says so', async () => {
    const id = await system.newSession();
    const { page, faults } = await system.open(`#/sessions/${id}`);
    const box = page.getByRole('textbox', { name: 'Message' });
    await say(page, 'wait 3 seconds and show progress');
    await page.locator('.session-head').getByText('running').waitFor();
    expect(await box.getAttribute('placeholder')).toBe('Write a message into this run');
    await say(page, 'What is 6 * 7?');
    await messagesOf(page, 'You').filter({ hasText: 'What is 6 * 7?' }).getByText('while it worked').waitFor();
    await wasAccepted(page);
    await messagesOf(page, 'Agent').getByText('42').first().waitFor();
    await page.locator('.session-head').getByText('idle').waitFor();
    await wasAccepted(page);
    expect(await box.getAttribute('placeholder')).toBe('Write a message');
    expect(await runsOf(id)).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  test('[C5] a message that came too late for its run is the next message', async () => {
    const id = await system.newSession();
    const tools = [{ name: 'get_location', description: 'Where the user is', parameters: { type: 'object' } }];
    // The model has answered already: the result ends the run.
    const content = 'use get_location';
    await system.call('POST', `/agent/session/${id}/message`, { content, tools, stream: false });
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await page.getByRole('textbox', { name: /result/i }).waitFor();
    await say(page, 'What is 6 * 7?');
    await messagesOf(page, 'You').getByText('while it worked').waitFor();
    await wasAccepted(page);
    await page.getByRole('textbox', { name: /result/i }).fill('Bergen');
    await page.getByRole('button', { name: 'Send result' }).click();
    await messagesOf(page, 'Agent').nth(1).getByText('42').first().waitFor();
    await messagesOf(page, 'Agent').nth(0).getByText('Bergen').first().waitFor();
    await page.locator('.session-head').getByText('idle').waitFor();
    await expect.poll(async () => await asked(page)).toEqual(['use get_location', 'What is 6 * 7?']);
    expect(await page.getByText('while it worked').count()).toBe(0);
    expect(await runsOf(id)).toHaveLength(2);
    expect(faults).toEqual([]);
  });

  test('[C6] the sessions are listed by title, filtered, and opened', async () => {
    const anna = await system.newSession('assistant', { user_id: 'anna' });
    await system.send(anna, 'echo: the title of Anna');
    const bob = await system.newSession('careful_assistant', { user_id: 'bob' });
    await system.send(bob, 'compute 17**21 in python');
    const { page, faults } = await system.open('#/sessions');
    const list = page.getByRole('region', { name: 'Sessions' });
    const ofAnna = list.getByRole('link', { name: 'echo: the title of Anna' });
    const ofBob = list.getByRole('link', { name: 'compute 17**21 in python' });
    await ofAnna.waitFor();
    await list
      .getByRole('listitem')
      .filter({ has: page.getByRole('link', { name: 'compute 17**21 in python' }) })
      .getByText('waiting')
      .waitFor();
    expect(await axeViolations(page)).toEqual([]);

    const user = page.getByRole('searchbox', { name: 'User' });
    await user.pressSequentially('anna');
    await expect.poll(() => ofBob.count()).toBe(0);
    await ofAnna.waitFor();
    expect(await user.inputValue()).toBe('anna');
    expect(page.url()).toContain('user=anna');
    await user.fill('');
    await ofBob.waitFor();
    await page.getByRole('combobox', { name: 'Status' }).selectOption('waiting');
    await expect.poll(() => ofAnna.count()).toBe(0);
    await page.reload();
    await ofBob.waitFor();
    expect(await ofAnna.count()).toBe(0);
    await page.getByRole('combobox', { name: 'Status' }).selectOption('');
    await page.getByRole('combobox', { name: 'Agent' }).selectOption('assistant');
    await ofAnna.waitFor();
    await expect.poll(() => ofBob.count()).toBe(0);
    await ofAnna.click();
    await expect.poll(async () => await asked(page)).toEqual(['echo: the title of Anna']);

    const box = page.getByRole('searchbox', { name: 'Paste an id' });
    await page.goto(`${system.url}/#/sessions?list=runs`);
    await box.fill('ses_12');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('This is not the id of a session.').waitFor();
    await box.fill('');
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await page.getByRole('link', { name: 'All sessions' }).click();
    await ofAnna.waitFor();
    expect(faults).toEqual([]);
  });
});
