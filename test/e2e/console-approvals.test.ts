/** Requests for approval in the console: of one session and of all, decided here and elsewhere (U2, U4, J8). */
import type { Locator } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { noChromium } from '../support/chromium.ts';
import { approveIn, conversationOf, focused, say, setHidden, waitForAction } from '../support/console.ts';
import type { ConsolePage } from '../support/console.ts';
import { useConsole } from '../support/use-console.ts';

const system = useConsole();

interface Approval {
  readonly approval_id: string;
  readonly session_id: string;
}

async function approvalsOf(id: string): Promise<readonly Approval[]> {
  return (await system.call<{ approvals: Approval[] }>('GET', `/agent/session/${id}/approvals`)).approvals;
}

/** The page of all approvals. The requests of other files, which share the system, are not on it. */
async function openApprovals(sessions: readonly string[]): Promise<ConsolePage> {
  const opened = await system.open('#/agents');
  await opened.page.route(
    ({ pathname }) => pathname === '/approvals',
    async (route) => {
      const response = await route.fetch();
      const list = (await response.json()) as { approvals: Approval[] };
      const approvals = list.approvals.filter(({ session_id: id }) => sessions.includes(id));
      await route.fulfill({ response, json: { ...list, approvals } });
    },
  );
  await opened.page.goto(`${system.url}/#/approvals`);
  return opened;
}

/** Denies the open requests of a session, without the console. */
async function denyAll(id: string): Promise<void> {
  for (const { approval_id: approval } of await approvalsOf(id)) {
    await system.call('POST', `/agent/session/${id}/approvals/${approval}`, { approve: false });
  }
}

interface TwoRequests extends ConsolePage {
  /** The sessions that ask, the older request first. */
  readonly sessions: readonly [string, string];
  readonly first: Locator;
  readonly second: Locator;
}

/** The page of all approvals with two requests. @param base distinguishes their code from that of other tests */
async function openTwoRequests(base: number): Promise<TwoRequests> {
  const ask = async (power: number): Promise<string> => {
    const id = await system.newSession('careful_assistant');
    await system.send(id, `compute ${base}**${power} in python`);
    return id;
  };
  const sessions = [await ask(30), await ask(31)] as const;
  const opened = await openApprovals(sessions);
  const cardOf = (power: number): Locator =>
    opened.page.getByRole('article').filter({ hasText: `print(${base}**${power})` });
  await cardOf(31).waitFor();
  return { ...opened, sessions, first: cardOf(30), second: cardOf(31) };
}

describe.skipIf(noChromium !== null)(`in a browser${noChromium === null ? '' : `: ${noChromium}`}`, () => {
  test('[U2] denying an action, with a note', async () => {
    const id = await system.newSession('careful_assistant');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await say(page, 'run `ls /` in the shell');
    await page.getByRole('button', { name: 'Deny', exact: true }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    await waitForAction(page, /shell_1.*(failed|cancelled|skipped)/);
    expect(faults).toEqual([]);
  });

  test('[U2] [U4] an approval is decided on the page of all approvals, while another tab watches', async () => {
    const id = await system.newSession('careful_assistant');
    const watching = await system.open(`#/sessions/${id}`);
    await say(watching.page, 'compute 3**50 in python');
    await approveIn(watching.page).waitFor();
    const deciding = await openApprovals([id]);
    await deciding.page.getByText('print(3**50)').first().waitFor();
    await approveIn(deciding.page).first().click();
    await conversationOf(watching.page).getByText('717897987691852588770249').first().waitFor();
    await expect.poll(() => approveIn(watching.page).count()).toBe(0);
    expect([...watching.faults, ...deciding.faults]).toEqual([]);
  });

  test('[U4] a request does not move while another one is decided elsewhere', async () => {
    const { page, faults, sessions, first, second } = await openTwoRequests(7);
    const before = await second.boundingBox();
    await denyAll(sessions[0]);
    await first.getByText('No longer open').waitFor();
    expect(await second.boundingBox()).toEqual(before);
    await approveIn(second).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => second.count()).toBe(0);
    expect(await focused(page)).not.toBe('BODY ');
    expect(faults).toEqual([]);
  });

  test('[U4] a decision that comes too late says so, and moves nothing', async () => {
    const { page, faults, sessions, first, second } = await openTwoRequests(6);
    // The list is not loaded again.
    await page.route(
      ({ pathname }) => pathname === '/approvals',
      () => undefined,
    );
    await denyAll(sessions[0]);
    const before = await second.boundingBox();
    await approveIn(first).click();
    await first.getByText('No longer open').waitFor();
    expect(await second.boundingBox()).toEqual(before);
    await denyAll(sessions[1]);
    expect(faults).toEqual([]);
  });

  test('[U2] requests for approval are gone when their run is stopped', async () => {
    const id = await system.newSession('careful_assistant');
    const { page, faults } = await system.open(`#/sessions/${id}`);
    await say(page, 'compute 2**5 in python, list the files in shell and compute 3**5 in python at the same time');
    await expect.poll(() => approveIn(page).count()).toBe(3);
    await page.getByRole('button', { name: 'Stop' }).click();
    await expect.poll(() => approveIn(page).count()).toBe(0);
    await page.locator('.session-head').getByText('idle').waitFor();
    expect(faults).toEqual([]);
  });

  test('[U2] a sub-agent that asks while the page is hidden is shown afterwards', async () => {
    await system.call(
      'PUT',
      '/manifests/agent/boss',
      'kind: Agent\nversion: "1.0"\nname: boss\nsummary: It delegates.\npersona: {agent: You help.}\n' +
        'import: {agents: [careful_assistant], tools: [echo]}\n',
    );
    const { page, faults } = await system.open();
    await page.clock.install();
    await page.goto(`${system.url}/?boss#/playground?agent=boss`);
    await page
      .getByRole('textbox', { name: 'Protocol text' })
      .fill(
        '<action type="tool" mode="async" id="w">{"name":"echo","parameters":{"message":"x","delay_ms":10000}}</action>' +
          '<action type="agent" name="careful_assistant" mode="async" id="sub" depends_on="w">compute 2**77 in python</action>' +
          '<response final="true">$sub</response>',
      );
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await waitForAction(page, /^w.*running/);
    await setHidden(page, true);
    await page.clock.fastForward(21_000);
    const id = /ses_[0-9a-f]+/.exec(page.url())?.[0] ?? '';
    await expect.poll(async () => (await approvalsOf(id)).length, { timeout: 60_000 }).toBe(1);
    expect(await approveIn(page).count()).toBe(0);
    await setHidden(page, false);
    await approveIn(page).waitFor();
    await approveIn(page).click();
    await conversationOf(page).getByText('151115727451828646838272').first().waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });
});
