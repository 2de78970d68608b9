/** What the console weighs, and what its policy allows (U1). */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';

const BUDGET_BYTES = 60_000;
const DIST = 'console/dist';

beforeAll(() => {
  execFileSync(process.execPath, ['scripts/build-console.ts']);
});

test('[U1] scripts and styles of the console weigh at most 60 KB gzipped', () => {
  const sizes = readdirSync(join(DIST, 'assets')).map((name) => [
    name,
    gzipSync(readFileSync(join(DIST, 'assets', name)), { level: 9 }).length,
  ]);
  const total = sizes.reduce((sum, [, size]) => sum + Number(size), 0);
  expect(total, JSON.stringify(sizes)).toBeLessThanOrEqual(BUDGET_BYTES);
  expect(sizes).toHaveLength(2);
});

test('[U1] the page loads its own files only, and runs no inline script or style', () => {
  const page = readFileSync(join(DIST, 'index.html'), 'utf8');
  const addresses = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '');
  expect(addresses.length).toBe(3);
  for (const address of addresses) expect(address).toMatch(/^\/(assets\/console-[A-Z0-9]+\.(js|css)|icon\.svg)$/);
  expect(page).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|\sstyle=/);
});

test('[U1] no script of the console writes HTML, evaluates text or stores anything', () => {
  const script = readdirSync(join(DIST, 'assets')).find((name) => name.endsWith('.js')) ?? '';
  const text = readFileSync(join(DIST, 'assets', script), 'utf8');
  expect(text).not.toMatch(
    /\beval\(|new Function\(|document\.write|localStorage|sessionStorage|document\.cookie|indexedDB/,
  );
});
