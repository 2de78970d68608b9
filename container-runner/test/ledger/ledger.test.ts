/** The guarantees of the ledger (R1). */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Ledger } from '../../ledger/ledger.ts';
import { limits } from '../../limits.ts';

let directory: string;
let file: string;
let now: number;
let ledger: Ledger;
beforeEach(async () => {
  directory = await fs.mkdtemp(path.join(os.tmpdir(), 'ledger-'));
  file = path.join(directory, 'deep', 'jobs.sqlite');
  now = 1_000_000;
  ledger = new Ledger(file, () => now);
});
afterEach(async () => {
  ledger.close();
  await fs.rm(directory, { recursive: true, force: true });
});

const exited = { end: 'exited', exitCode: 0, truncated: false } as const;
function add(id: string, session = 's'): boolean {
  return ledger.add({ id, session, kind: 'python', requestHash: 'h' });
}
/** Changes the file between two starts. */
function change(act: (db: DatabaseSync) => void): void {
  ledger.close();
  const db = new DatabaseSync(file);
  act(db);
  db.close();
  ledger = new Ledger(file, () => now);
}
function reopen(): void {
  ledger.close();
  ledger = new Ledger(file, () => now);
}

test('[R1] an id belongs to one job', () => {
  expect(add('a')).toBe(true);
  expect(add('a')).toBe(false);
});

test('[R1] a job ends once', () => {
  add('a');
  expect(ledger.finish('a', 's', exited)).toBe(true);
  expect(ledger.finish('a', 's', { end: 'timeout', exitCode: null, truncated: false })).toBe(false);
  expect(ledger.job('a')).toMatchObject({ end: 'exited', exitCode: 0 });
  expect(ledger.events('s', 0).map(({ type }) => type)).toEqual(['exited']);
});

test('[R1] opening the ledger ends jobs without an owner', () => {
  add('queued');
  add('running');
  ledger.start('running', 's', 'wasm');
  add('ended');
  ledger.finish('ended', 's', exited);
  reopen();
  expect(['queued', 'running', 'ended'].map((id) => ledger.job(id)?.end)).toEqual(['lost', 'lost', 'exited']);
  expect(ledger.events('s', 0).filter(({ type }) => type === 'exited').length).toBe(3);
});

test('[R1] event numbers are never reused, even after everything was pruned', () => {
  add('a');
  ledger.finish('a', 's', exited);
  const last = ledger.events('s', 0).at(-1)?.seq ?? 0;
  now += limits.retentionMs + 1;
  reopen();
  expect(ledger.job('a')).toBeNull();
  expect(ledger.events('s', 0)).toEqual([]);
  add('b');
  ledger.finish('b', 's', exited);
  expect(ledger.events('s', 0)[0]?.seq).toBeGreaterThan(last);
});

test('[R1] unfinished jobs are never pruned', () => {
  add('a');
  ledger.start('a', 's', 'wasm');
  now += limits.retentionMs * 2;
  ledger.prune();
  expect(ledger.job('a')).toMatchObject({ state: 'running' });
  expect(ledger.events('s', 0).length).toBe(1);
});

test('[R1] past the size limit the oldest ended jobs are pruned, and running ones never', () => {
  ledger.close();
  ledger = new Ledger(file, () => now, 2_000_000);
  add('running');
  ledger.output('running', 's', 'stdout', 'kept');
  for (let at = 0; at < 400; at += 1) {
    now += 1;
    add(`job-${at}`);
    ledger.output(`job-${at}`, 's', 'stdout', 'x'.repeat(10_000));
    ledger.finish(`job-${at}`, 's', exited);
  }
  ledger.prune();
  expect(ledger.job('job-0')).toBeNull();
  expect(ledger.printed('job-0', 'stdout')).toBe('');
  expect(ledger.job('job-399')).not.toBeNull();
  expect(ledger.printed('running', 'stdout')).toBe('kept');
});

test('[R1] jobs with much output between two prunings do not fill the disk', () => {
  ledger.close();
  ledger = new Ledger(file, () => now, 2_000_000);
  const text = '\u0001'.repeat(1_000_000);
  let most = 0;
  for (let at = 0; at < 40; at += 1) {
    now += 1;
    add(`job-${at}`);
    ledger.output(`job-${at}`, 's', 'stdout', text);
    ledger.finish(`job-${at}`, 's', exited);
    most = Math.max(most, ledger.sizeBytes);
  }
  // 240 MB were written
  expect(most).toBeLessThan(limits.ledgerSlackChars + 10_000_000);
  expect(ledger.job('job-39')).not.toBeNull();
});

test('[X3] only the runner’s user can read the output of jobs', async () => {
  expect((await fs.stat(file)).mode & 0o077).toBe(0);
});

test('[R1] a reader without a position starts before unfinished and recent jobs, not at the first event', () => {
  add('old');
  ledger.start('old', 's', 'wasm');
  ledger.finish('old', 's', exited);
  now += limits.recentMs + 1;
  const before = ledger.events('s', 0).at(-1)?.seq ?? 0;
  expect(ledger.startingPoint('s')).toBe(before);
  add('new');
  ledger.start('new', 's', 'wasm');
  expect(ledger.startingPoint('s')).toBe(before);
  expect(ledger.events('s', ledger.startingPoint('s')).map((event) => event.job)).toEqual(['new']);
  expect(ledger.startingPoint('other')).toBe(0);
});

test('[R7] a token is used up until it has expired', () => {
  expect(ledger.spend('t', now + 60_000)).toBe(true);
  expect(ledger.spend('t', now + 60_000)).toBe(false);
  reopen();
  expect(ledger.spend('t', now + 60_000)).toBe(false);
  now += 60_001;
  ledger.prune();
  expect(ledger.spend('t', now + 60_000)).toBe(true);
});

test('[R1] watchers get only the events of their session, until they stop', () => {
  const heard: string[] = [];
  const stop = ledger.watch('s', () => heard.push('s'));
  ledger.watch('other', () => heard.push('other'));
  add('a');
  ledger.output('a', 's', 'stdout', 'x');
  stop();
  ledger.output('a', 's', 'stdout', 'y');
  expect(heard).toEqual(['s']);
});

describe('what a job left in its workspace', () => {
  const workspace = {
    changes: [{ path: 'a\n\u2028"', base: null, sha256: 'f'.repeat(64), size: 1, executable: false }],
    skipped: [],
    skipped_count: 0,
    error: null,
  } as const;
  const payload = { end: 'exited', exit_code: 0, truncated: false, workspace };

  test('[C7] is stored with its end, in the record and in the event, and kept over a restart', () => {
    add('a');
    ledger.finish('a', 's', { ...exited, workspace });
    add('b');
    ledger.finish('b', 's', exited);
    for (let start = 0; start < 2; start += 1) {
      expect(ledger.workspace('a')).toEqual(workspace);
      expect(ledger.workspace('b')).toBeNull();
      expect(ledger.workspace('unknown')).toBeNull();
      expect(ledger.events('s', 0).map(({ data }) => JSON.parse(data) as unknown)).toEqual([
        payload,
        { end: 'exited', exit_code: 0, truncated: false },
      ]);
      reopen();
    }
  });

  test.each(['', '{', '[]', '1', '"x"'])(
    '[R1] is damaged in the ledger (%j): it is an error, not lost silently',
    (text) => {
      add('a');
      ledger.finish('a', 's', { ...exited, workspace });
      change((db) => db.prepare('UPDATE jobs SET workspace = ?').run(text));
      expect(ledger.workspace('a')).toMatchObject({ changes: [], error: { code: 'workspace_lost' } });
      expect(ledger.job('a')).toMatchObject({ end: 'exited' });
    },
  );

  test('[R1] is damaged in the event: the event says that the job is lost', () => {
    add('a');
    ledger.finish('a', 's', { ...exited, workspace });
    const data = JSON.stringify({ ...payload, workspace: 'x' });
    change((db) => db.prepare('UPDATE events SET data = ?').run(data));
    expect(ledger.events('s', 0).map((event) => JSON.parse(event.data) as unknown)).toEqual([
      { end: 'lost', exit_code: null, truncated: false },
    ]);
  });

  test('[C7] long ones are read in several batches', () => {
    const long = { ...workspace, skipped: [{ path: 'x'.repeat(limits.eventBatchChars / 4), reason: '' }] };
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      add(id);
      ledger.finish(id, 's', { ...exited, workspace: long });
    }
    const first = ledger.events('s', 0);
    expect(first.map(({ job }) => job)).toEqual(['a', 'b', 'c', 'd']);
    expect(ledger.events('s', first.at(-1)?.seq ?? 0).map(({ job }) => job)).toEqual(['e', 'f']);
  });
});

test('[O1] the trace of a job and the start of its program survive a restart', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  ledger.add({ id: 'a', session: 's', kind: 'python', requestHash: 'h', traceparent, createdAt: 999_000 });
  ledger.finish('a', 's', exited, 1_000_250);
  reopen();
  expect(ledger.job('a')).toMatchObject({ traceparent, createdAt: 999_000, preparedAt: 1_000_250 });
});

test('[O1] the latest ended jobs whose spans are due are listed in order until they are done, across restarts', () => {
  for (const id of ['a', 'b', 'c', 'running']) {
    ledger.add({ id, session: 's', kind: 'python', requestHash: 'h', spansDue: true });
  }
  add('other');
  for (const id of ['other', 'c', 'a', 'b']) {
    now += 1_000;
    ledger.finish(id, 's', exited);
  }
  const due = (most: number): string[] => ledger.spansDue(most).map(({ id }) => id);
  expect(due(10)).toEqual(['c', 'a', 'b']);
  expect(due(2)).toEqual(['a', 'b']);
  ledger.spansDone(['c', 'b', 'unknown']);
  reopen();
  expect(due(10)).toEqual(['a', 'running']);
  ledger.spansDone(['a', 'running']);
  expect(due(10)).toEqual([]);
});

test('[O1] the jobs that a restart ended are listed once, with their traces', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  ledger.add({ id: 'running', session: 's', kind: 'python', requestHash: 'h', traceparent });
  ledger.start('running', 's', 'wasm');
  add('ended');
  ledger.finish('ended', 's', exited);
  now += 5_000;
  reopen();
  expect(ledger.lostAtStart()).toMatchObject([{ id: 'running', end: 'lost', traceparent, endedAt: 1_005_000 }]);
  reopen();
  expect(ledger.lostAtStart()).toEqual([]);
});

test('[J9] the database of another program is not changed', () => {
  ledger.close();
  const db = new DatabaseSync(`${file}.other`);
  db.exec('CREATE TABLE jobs (x); PRAGMA user_version = 3');
  expect(() => new Ledger(`${file}.other`, () => now)).toThrow(/no such/);
  expect(db.prepare(`SELECT sql FROM sqlite_master`).all()).toEqual([{ sql: 'CREATE TABLE jobs (x)' }]);
  expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 });
  db.close();
  ledger = new Ledger(':memory:', () => now);
});

test.each([
  ['an earlier', 'ALTER TABLE jobs DROP COLUMN traceparent; PRAGMA user_version = 2', 'no such column: traceparent'],
  ['a newer', 'PRAGMA user_version = 99', 'newer version (schema 99, known: 3)'],
])('[J9] a ledger of %s schema is not opened', (_schema, change, message) => {
  ledger.close();
  const db = new DatabaseSync(file);
  db.exec(change);
  db.close();
  expect(() => new Ledger(file, () => now)).toThrow(message);
  ledger = new Ledger(':memory:', () => now);
});
