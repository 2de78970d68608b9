import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CommandCall } from '../../cli/command.ts';
import { connectionOf, namedConnectionOf, request } from '../../cli/terminal/connection.ts';
import { cortexHere } from '../support/cortex.ts';
import { dispatched } from './dispatched.ts';
import { folderOfFile, serverOfFile } from './scene.ts';

/** A project without settings. */
const project = folderOfFile();

/** A system with one API key. */
const server = serverOfFile((asked, answer) => {
  const known = asked.headers.authorization === 'Bearer right-key';
  const problem = (status: number, code: string, detail: string): void =>
    void answer.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify({ code, detail }));
  if (asked.url === '/health') answer.end('{"service":"cortex-edge"}');
  else if (!known) problem(401, 'unauthorized', 'Unknown API key');
  else if (asked.url === '/broken') answer.writeHead(502).end('<html>bad gateway\u001B[2K');
  else if (asked.url === '/agent/nobody/session') problem(404, 'unknown_agent', 'No agent is called "nobody"\u001B[2K');
  else answer.end('{"session_id":"ses_1"}');
});

/** @param told receives the warnings */
const sourceOf = (
  environment: CommandCall['environment'],
  values: CommandCall['values'] = {},
  told: string[] = [],
): Parameters<typeof connectionOf>[0] => ({ environment, values, tell: (line) => void told.push(line) });

describe('[H5] the key of commands', () => {
  test.each([
    [{}, undefined, null],
    [{ CORTEX_API_KEY: '' }, undefined, null],
    [{ CORTEX_API_KEY: 'of:the@environment' }, undefined, 'of:the@environment'],
    [{ CORTEX_API_KEY: 'environment' }, 'argument', 'argument'],
  ])('of %j and --key %s is %s', (environment, given, key) => {
    expect(connectionOf(sourceOf(environment, { key: given }), project)).toEqual({ url: 'http://127.0.0.1:8787', key });
  });

  test.each(['two keys', 'line\nbreak', 'schlüssel'])('%j is rejected without being printed', (key) => {
    expect(() => connectionOf(sourceOf({ CORTEX_API_KEY: key }))).toThrow(
      'CORTEX_API_KEY must be one API key: visible ASCII characters without spaces',
    );
    expect(() => connectionOf(sourceOf({}, { key }))).toThrow(
      '--key must be one API key: visible ASCII characters without spaces',
    );
  });

  test('is sent with every request', async () => {
    const connection = connectionOf(sourceOf({ PORT: String(server.port), CORTEX_API_KEY: 'right-key' }));
    const answer = await request(connection, '/agents', { headers: { accept: 'application/json' } });
    expect(await answer.json()).toEqual({ session_id: 'ses_1' });
    await expect(request(connection, '/agent/nobody/session')).rejects.toThrow(
      'unknown_agent: No agent is called "nobody"\\u{1b}[2K',
    );
    await expect(request(connection, '/broken')).rejects.toThrow('HTTP 502: <html>bad gateway\\u{1b}[2K');
  });

  test.each([
    ['chat', [], {}, 'CORTEX_API_KEY=<key>'],
    ['chat', ['--key', 'wrong-key'], { CORTEX_API_KEY: 'right-key' }, 'does not know this API key'],
    ['demo', [], {}, 'requires an API key'],
    ['demo', [], { CORTEX_API_KEY: 'wrong-key' }, 'does not know this API key'],
    ['sessions', ['--key', 'wrong-key'], {}, 'does not know this API key'],
  ])('cortex %s %j with %j exits with 3 and says what to do', async (command, given, environment, said) => {
    const { out, err, code } = await dispatched([command, ...given], { PORT: String(server.port), ...environment });
    expect(err).toContain(said);
    expect(out + err).not.toMatch(/wrong-key|right-key/);
    expect(code).toBe(3);
  });
});

describe('[K4] the system of a command', () => {
  test.each([
    [{}, {}, 'http://127.0.0.1:8787'],
    [{ PORT: '9000' }, {}, 'http://127.0.0.1:9000'],
    [{ PORT: '9000', CORTEX_URL: 'https://cortex.example.com/' }, {}, 'https://cortex.example.com'],
    [{ CORTEX_URL: 'https://of.environment' }, { url: 'http://of.option:81/behind/' }, 'http://of.option:81/behind'],
  ])('of %j and %j is %s', (environment, values, url) => {
    expect(connectionOf(sourceOf(environment, values), project).url).toBe(url);
  });

  test('[H8] has the port of .dev.vars, as the system that cortex dev starts', () => {
    writeFileSync(join(project, '.dev.vars'), 'PORT=9001\n');
    const urlOf = (environment: CommandCall['environment']): string => connectionOf(sourceOf(environment), project).url;
    expect(urlOf({})).toBe('http://127.0.0.1:9001');
    expect(urlOf({ PORT: '' })).toBe('http://127.0.0.1:9001');
    expect(urlOf({ PORT: '9000' })).toBe('http://127.0.0.1:9000');
    rmSync(join(project, '.dev.vars'));
  });

  test.each(['0', '65536', '8e3', '80.5', 'localhost:80'])('PORT "%s" is refused', (text) => {
    expect(() => connectionOf(sourceOf({ PORT: text }), project)).toThrow(`PORT "${text}" is not a port (1-65535)`);
  });

  test('cortex dev with a PORT that is not one is a wrong usage', async () => {
    const { err, code } = await cortexHere(['dev'], { cwd: project, env: { PORT: '99999' } });
    expect(err).toContain('PORT "99999" is not a port (1-65535)');
    expect(code).toBe(2);
  });

  test.each([
    [{ PORT: '9000', CORTEX_API_KEY: 'a-key' }, {}, null],
    [{ CORTEX_URL: '' }, {}, null],
    [{ CORTEX_URL: 'http://of.environment' }, {}, 'http://of.environment'],
    [{}, { url: 'http://of.option' }, 'http://of.option'],
  ])('named by %j and %j is %s', (environment, values, url) => {
    expect(namedConnectionOf(sourceOf(environment, values))?.url ?? null).toBe(url);
  });

  test.each(['ftp://host', 'host:80', 'https://', 'https://host?token=x', 'https://host#x', ''])(
    '--url "%s" is refused',
    (url) => {
      expect(() => connectionOf(sourceOf({}, { url }))).toThrow('--url must be an address such as https://');
    },
  );

  test('a password in the address is refused and not repeated', () => {
    expect(() => connectionOf(sourceOf({ CORTEX_URL: 'https://ann:hidden@host' }))).toThrow(
      /^CORTEX_URL must be an address (?!.*hidden)/,
    );
  });

  test.each([
    ['http://cortex.example.com', 'a-key', 1],
    ['http://cortex.example.com', '', 0],
    ['https://cortex.example.com', 'a-key', 0],
    ['http://localhost:8787', 'a-key', 0],
    ['http://127.0.0.1:8787', 'a-key', 0],
    ['http://127.0.0.1.example.com', 'a-key', 1],
  ])('a warning about the key in plain text: %s with the key "%s": %i', (url, key, count) => {
    const told: string[] = [];
    connectionOf(sourceOf({ CORTEX_API_KEY: key }, { url }, told));
    expect(told).toHaveLength(count);
    expect(told.join('')).not.toContain('a-key');
  });
});
