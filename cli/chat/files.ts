/**
 * Commands of the chat for the files of its session: `/files`, `/get`, `/put`, `/rm` (C7).
 *
 * Nothing is overwritten or deleted with others before the user has agreed, neither here nor in the session.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { messageOf } from '../../src/domain/errors.ts';
import { requireReadable } from '../project/real-path.ts';
import { Refusal } from '../terminal/connection.ts';
import { visible } from '../terminal/visible.ts';
import type { Api, Ask } from './question.ts';

export const FILE_COMMANDS = `  /files [folder]         lists the files of the session
  /get <path> [local]     downloads one of them, into the current folder unless you name another place
  /put <local> [path]     uploads a file to the session
  /rm <path>              deletes a file of the session; with a "/" at the end, a folder`;

/** What is printed where a command cannot be used like this. */
export const FILE_USAGES: ReadonlyMap<string, string> = new Map([
  ['files', '/files [folder]'],
  ['get', '/get <path of a file of the session> [local file or folder]'],
  ['put', '/put <local file> [path in the session]; put names with spaces into quotes'],
  ['rm', '/rm <path of a file of the session, or of a folder with a "/" at its end>'],
]);

interface Entry {
  readonly path: string;
  readonly size: number;
  readonly modified_at: number;
  readonly executable?: true;
}

interface Listed {
  readonly files: readonly Entry[];
  readonly bytes: number;
  readonly max_bytes: number;
}

const LISTED = 200;
const EXECUTABLE = 0o111;

export class FileCommands {
  readonly #api: Api;
  readonly #ask: Ask;

  constructor(api: Api, ask: Ask) {
    this.#api = api;
    this.#ask = ask;
  }

  /** @returns what to print. @throws Refusal of the system */
  async command(name: string, given: string, session: string): Promise<string> {
    const words = wordsOf(given);
    const usage = `usage: ${FILE_USAGES.get(name)}`;
    if (words === null) return usage;
    const [first, second] = words;
    const root = `/agent/session/${session}/files`;
    const most = name === 'get' || name === 'put' ? 2 : 1;
    if (words.length > most || (first === undefined && name !== 'files')) return usage;
    switch (name) {
      case 'get':
        return await this.#get(root, first ?? '', second ?? '.');
      case 'put':
        return await this.#put(root, first ?? '', second);
      case 'rm':
        return await this.#remove(root, first ?? '');
      default:
        return await this.#list(root, first);
    }
  }

  async #list(root: string, folder: string | undefined): Promise<string> {
    const query = folder === undefined ? '' : `?prefix=${encodeURIComponent(folder)}`;
    const { files, bytes, max_bytes: most } = await this.#api.read<Listed>(`${root}${query}`);
    if (files.length === 0) return folder === undefined ? 'The session has no files.' : noFolder(folder);
    const lines = files.slice(0, LISTED).map(({ path, size, modified_at: at, executable }) => {
      const time = new Date(at).toISOString().slice(0, 16).replace('T', ' ');
      return `  ${String(size).padStart(10)}  ${time}  ${visible(path)}${executable === true ? ' (executable)' : ''}`;
    });
    const more = files.length > LISTED ? [`  … and ${files.length - LISTED} more`] : [];
    return [...lines, ...more, `All files have ${bytes} of ${most} bytes.`].join('\n');
  }

  async #get(root: string, path: string, local: string): Promise<string> {
    // The path comes from a list that programs have filled: only its last part names a file here.
    const name = path.split('/').at(-1) ?? '';
    if (basename(name) !== name || name === '' || name === '.' || name === '..') return notAFile(path);
    const response = await this.#sendOfFile(`${root}/${encoded(path)}`, { folder: `/files ${path}/ lists its files` });
    const bytes = new Uint8Array(await response.arrayBuffer());
    try {
      const isFolder = (await stat(local).catch(() => null))?.isDirectory() === true;
      const target = resolve(isFolder ? join(local, name) : local);
      requireReadable(dirname(target));
      return (await this.#save(target, bytes)) ? `saved ${visible(target)} (${bytes.length} bytes)` : 'not saved';
    } catch (fault) {
      return `not saved: ${visible(messageOf(fault))}`;
    }
  }

  /** @returns false if the user wants to keep what is there */
  async #save(target: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await writeFile(target, bytes, { flag: 'wx' });
      return true;
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code !== 'EEXIST') throw fault;
    }
    if (!(await this.#agrees(`  ${visible(target)} exists. Replace it? [y/N] `))) return false;
    // Replaces a link itself, not the file that it leads to.
    const part = join(dirname(target), `.${randomUUID()}.part`);
    try {
      await writeFile(part, bytes, { flag: 'wx' });
      await rename(part, target);
    } finally {
      await rm(part, { force: true });
    }
    return true;
  }

  async #put(root: string, local: string, given: string | undefined): Promise<string> {
    const isFolder = given?.endsWith('/') === true;
    const path = given === undefined || isFolder ? `${given ?? ''}${basename(local)}` : given;
    let bytes: Uint8Array<ArrayBuffer>;
    let isExecutable: boolean;
    try {
      requireReadable(local);
      bytes = new Uint8Array(await readFile(local));
      isExecutable = process.platform !== 'win32' && ((await stat(local)).mode & EXECUTABLE) !== 0;
    } catch (fault) {
      return `not uploaded: ${visible(messageOf(fault))}`;
    }
    const to = `${root}/${encoded(path)}${isExecutable ? '?executable=true' : ''}`;
    const upload = async (headers: Record<string, string>): Promise<string> => {
      await this.#api.send(to, { method: 'PUT', headers, body: bytes });
      return `uploaded ${visible(path)} (${bytes.length} bytes)`;
    };
    try {
      return await upload({ 'if-none-match': '*' });
    } catch (fault) {
      if (!(fault instanceof Refusal) || !fault.message.startsWith('precondition_failed:')) throw fault;
    }
    if (!(await this.#agrees(`  ${visible(path)} exists in the session. Replace it? [y/N] `))) return 'not uploaded';
    return await upload({});
  }

  async #remove(root: string, given: string): Promise<string> {
    const path = given.replace(/\/$/, '');
    const isFolder = path !== given;
    if (isFolder) {
      const { files } = await this.#api.read<Listed>(`${root}?prefix=${encodeURIComponent(path)}`);
      if (files.length === 0) return noFolder(given);
      if (!(await this.#agrees(`  Delete ${visible(given)} with ${count(files.length)}? [y/N] `))) return 'not deleted';
    }
    const query = isFolder ? '?recursive=true' : '';
    const response = await this.#sendOfFile(`${root}/${encoded(path)}${query}`, {
      folder: `/rm ${path}/ deletes it with everything in it`,
      method: 'DELETE',
    });
    const { deleted } = (await response.json()) as { deleted: string[] };
    return deleted.length === 1 ? `deleted ${visible(deleted[0] ?? '')}` : `deleted ${count(deleted.length)}`;
  }

  /** @param folder what to do with a folder here: the system's advice is for HTTP. @throws Refusal */
  async #sendOfFile(to: string, { folder, method = 'GET' }: { folder: string; method?: string }): Promise<Response> {
    try {
      return await this.#api.send(to, { method });
    } catch (fault) {
      const found = fault instanceof Refusal ? /^unknown_file: (.* is a folder): /.exec(fault.message) : null;
      throw found === null ? fault : new Refusal(`${found[1]}: ${visible(folder)}`);
    }
  }

  async #agrees(question: string): Promise<boolean> {
    return /^y(es)?$/i.test(((await this.#ask(question)) ?? '').trim());
  }
}

function count(files: number): string {
  return `${files} file${files === 1 ? '' : 's'}`;
}

function noFolder(path: string): string {
  return `The session has no folder "${visible(path)}".`;
}

function notAFile(path: string): string {
  return `"${visible(path)}" is not the path of a file.`;
}

/** @throws Refusal for a path that would lead to another route */
function encoded(path: string): string {
  const names = path.split('/');
  if (names.includes('.') || names.includes('..')) throw new Refusal(notAFile(path));
  return names.map(encodeURIComponent).join('/');
}

/** The words of a line, with quotes and escaped characters as in a shell; null if a quote is not closed. */
function wordsOf(text: string): string[] | null {
  const words: string[] = [];
  const word = /\s*((?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"\\])+)/gy;
  let end = 0;
  for (const { 0: all, 1: written = '' } of text.trim().matchAll(word)) {
    end += all.length;
    words.push(
      written.replaceAll(
        /\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)"/g,
        (_all, escaped?: string, single?: string, double?: string) =>
          escaped ?? single ?? (double ?? '').replaceAll(/\\(.)/g, '$1'),
      ),
    );
  }
  return end === text.trim().length ? words : null;
}
