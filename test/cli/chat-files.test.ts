/** `/files`, `/get`, `/put` and `/rm` of the chat (C7). */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bodyBytes } from '../support/body-bytes.ts';
import { Commands } from '../../cli/chat/commands.ts';
import { Api } from '../../cli/chat/question.ts';
import { Refusal } from '../../cli/terminal/connection.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { filesKit, ID } from '../http/workspace-kit.ts';

let folder: string;
const home = process.cwd();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chat-files-'));
  mkdirSync(join(folder, 'work'));
  process.chdir(join(folder, 'work'));
});
afterEach(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

interface Chat extends AsyncDisposable {
  readonly kit: SessionKit;
  readonly asked: string[];
  /** Runs a line such as `/get a`. */
  say(line: string): Promise<string>;
}

/** The commands with a session in this process, behind a server. @param answers to questions, in order */
async function chat(answers: readonly (string | null)[] = []): Promise<Chat> {
  const { kit, call } = await filesKit();
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = 'GET', headers, url = '' } = request;
      const body = method === 'PUT' ? { body: Buffer.concat(chunks) } : {};
      const given = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('if-')));
      const answer = await call(url.slice(url.indexOf('/files') + 6), {
        method,
        headers: given as Record<string, string>,
        ...body,
      });
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await bodyBytes(answer));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const asked: string[] = [];
  const api = new Api({ url: `http://127.0.0.1:${port}`, key: 'k-own' });
  const commands = new Commands(api, ID, async (question) => {
    asked.push(question);
    return await Promise.resolve(answers[asked.length - 1] ?? null);
  });
  return {
    kit,
    asked,
    say: async (line) => (await commands.command(line))?.text ?? 'a message',
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const pathsOf = ({ kit }: Chat): string[] => kit.session.workspace.list().map(({ path }) => path);

describe('[C7] the chat', () => {
  test('uploads, lists, downloads and deletes files', async () => {
    await using one = await chat(['y']);
    expect(await one.say('/files')).toBe('The session has no files.');
    writeFileSync('my notes.md', 'hello');
    writeFileSync('run.sh', '#!/bin/sh\n');
    chmodSync('run.sh', 0o755);
    expect(await one.say('/put "my notes.md"')).toBe('uploaded my notes.md (5 bytes)');
    expect(await one.say(String.raw`/put my\ notes.md docs/`)).toBe('uploaded docs/my notes.md (5 bytes)');
    expect(await one.say("/put run.sh 'bin/go'")).toBe('uploaded bin/go (10 bytes)');
    const listed = await one.say('/files');
    expect(listed).toMatch(/^ +10 {2}1970-01-01 00:16 {2}bin\/go \(executable\)\n +5 .* docs\/my notes.md\n/);
    expect(listed).toMatch(/All files have 20 of \d+ bytes\.$/);
    expect(await one.say('/files docs')).toMatch(/^ +5 [^\n]*docs\/my notes.md\nAll/);
    mkdirSync('down');
    expect(await one.say("/get 'docs/my notes.md' down")).toMatch(/^saved .*down\/my notes\.md \(5 bytes\)$/);
    expect(await one.say('/get bin/go other')).toMatch(/^saved .*work\/other \(10 bytes\)$/);
    expect(readFileSync('down/my notes.md', 'utf8')).toBe('hello');
    expect(await one.say('/rm bin/go')).toBe('deleted bin/go');
    expect(await one.say('/rm docs/')).toBe('deleted docs/my notes.md');
    expect(one.asked).toEqual(['  Delete docs/ with 1 file? [y/N] ']);
    expect(pathsOf(one)).toEqual(['my notes.md']);
  });

  test('overwrites nothing without a yes, neither here nor in the session', async () => {
    await using one = await chat(['', 'y', null, 'n', 'yes']);
    writeFileSync('a', 'mine');
    await one.say('/put a');
    writeFileSync('a', 'new');
    expect(await one.say('/get a')).toBe('not saved');
    expect(readFileSync('a', 'utf8')).toBe('new');
    expect(await one.say('/get a')).toMatch(/^saved /);
    expect(readFileSync('a', 'utf8')).toBe('mine');
    writeFileSync('a', 'newer');
    expect(await one.say('/put a')).toBe('not uploaded');
    expect(await one.say('/put a')).toBe('not uploaded');
    expect(one.kit.session.workspace.file('a')?.size).toBe(4);
    expect(await one.say('/put a')).toBe('uploaded a (5 bytes)');
    expect(one.asked[4]).toBe('  a exists in the session. Replace it? [y/N] ');
  });

  test('replaces a link itself, not the file that it leads to', async () => {
    await using one = await chat(['y']);
    writeFileSync(join(folder, 'outside'), 'outside');
    symlinkSync(join(folder, 'outside'), 'a');
    writeFileSync('b', 'content');
    await one.say('/put b a');
    expect(await one.say('/get a')).toMatch(/^saved /);
    expect(readFileSync(join(folder, 'outside'), 'utf8')).toBe('outside');
    expect(readFileSync('a', 'utf8')).toBe('content');
  });

  test.each(['..', '../outside', 'x/../../outside', '/'])(
    'a hostile path writes nothing outside of the current folder: /get %s',
    async (path) => {
      await using one = await chat(['y', 'y']);
      writeFileSync(join(folder, 'outside'), 'outside');
      const said = await one.say(`/get ${path}`).catch((fault: unknown) => {
        if (fault instanceof Refusal) return fault.message;
        throw fault;
      });
      expect(said).not.toContain('saved /');
      expect(readFileSync(join(folder, 'outside'), 'utf8')).toBe('outside');
    },
  );

  test('says what is wrong: the usage, a missing local file, a refusal of the system', async () => {
    await using one = await chat();
    for (const line of ['/get', '/put', '/rm', '/get a b c', '/rm a b', '/put "a', '/files a b']) {
      expect(await one.say(line)).toMatch(new RegExp(`^usage: ${line.split(' ')[0]} `));
    }
    expect(await one.say('/put none')).toMatch(/^not uploaded: no such file/);
    await expect(one.say('/get none')).rejects.toThrow('unknown_file: The workspace has no file "none"');
    expect(await one.say('/files none')).toBe('The session has no folder "none".');
    await one.kit.session.workspace.write([{ path: 'of/a', bytes: new Uint8Array() }]);
    await expect(one.say('/get of')).rejects.toThrow('"of" is a folder: /files of/ lists its files');
    await expect(one.say('/rm of')).rejects.toThrow('"of" is a folder: /rm of/ deletes it with everything in it');
    await expect(one.say('/rm ../../head')).rejects.toThrow('is not the path of a file');
    writeFileSync('a', 'x');
    await one.say('/put a');
    expect(await one.say('/get a none/a')).toMatch(/^not saved: no such file/);
  });

  test('shows names that could control the terminal as code points', async () => {
    await using one = await chat();
    await one.kit.session.workspace.write([{ path: 'a\u202Etxt.exe', bytes: new Uint8Array(1) }]);
    expect(await one.say('/files')).toContain(String.raw`a\u{202e}txt.exe`);
  });
});
