import { expect, test } from 'vitest';
import { UsageError } from '../../cli/command.ts';
import { endpointUrl } from '../../cli/terminal/endpoint-url.ts';

test.each(['http://127.0.0.1:8080/v1', 'https://api.example.com/v1'])('[O4] %s is the URL of an endpoint', (text) => {
  expect(endpointUrl('--base-url', text).href).toBe(text);
});

test.each([
  ['another scheme', 'ftp://x', '--base-url: "ftp://x" is not an HTTP(S) URL'],
  ['no URL', 'api.example.com', '--base-url: "api.example.com" is not an HTTP(S) URL'],
  ['a user and a password', 'http://carol:sesame@example.com', '--base-url must not contain a user or a password'],
  ['a user', 'http://sesame@example.com', '--base-url must not contain a user or a password'],
  ['a password without a scheme', 'carol:sesame@example.com', '--base-url: the value is not an HTTP(S) URL'],
])('[O4] an endpoint with %s is refused, and no password is quoted', (_, text, message) => {
  let said: unknown = null;
  try {
    endpointUrl('--base-url', text);
  } catch (fault) {
    said = fault;
  }
  expect(said).toBeInstanceOf(UsageError);
  expect(String(said)).toContain(message);
  expect(String(said)).not.toContain('sesame');
});
