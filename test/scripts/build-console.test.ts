/** What the console weighs, and what its policy allows (U1). */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';

/** Gzipped: what the page loads at once, and all that it can load. */
const FIRST_VIEW_BYTES = 60_000;
const ALL_BYTES = 180_000;
const DIST = 'console/dist';
const ASSETS = join(DIST, 'assets');

beforeAll(() => {
  execFileSync(process.execPath, ['scripts/build-console.ts']);
});

function gzippedBytes(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + gzipSync(readFileSync(join(ASSETS, name)), { level: 9 }).length, 0);
}

/** The scripts that these import at once, and they. */
function imported(names: readonly string[]): string[] {
  const all = new Set(names);
  for (const name of all) {
    const text = readFileSync(join(ASSETS, name), 'utf8');
    for (const [, other = ''] of text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)) all.add(other);
  }
  return [...all];
}

function namesInPage(): string[] {
  const page = readFileSync(join(DIST, 'index.html'), 'utf8');
  return [...page.matchAll(/"\/assets\/([^"]+)"/g)].map(([, name = '']) => name);
}

test('[U1] the first view of the console weighs at most 60 KB gzipped, and all of it at most 180 KB', () => {
  const first = imported(namesInPage());
  const all = readdirSync(ASSETS);
  expect(gzippedBytes(first), String(first)).toBeLessThanOrEqual(FIRST_VIEW_BYTES);
  expect(gzippedBytes(all), String(all)).toBeLessThanOrEqual(ALL_BYTES);
});

test('[U1] the first view is asked for at once, without Markdown and the pages of the system', () => {
  const names = namesInPage();
  expect(imported(names)).toEqual(names);
  const rest = readdirSync(ASSETS).filter((name) => !names.includes(name));
  expect(rest.map((name) => name.replace(/-[A-Z0-9]{8}\./, '.')).toSorted()).toEqual([
    'console-markdown-text.js',
    'console-pages.js',
  ]);
});

test('[U1] the page loads its own files only, and runs no inline script or style', () => {
  const page = readFileSync(join(DIST, 'index.html'), 'utf8');
  const addresses = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '');
  expect(addresses.length).toBe(namesInPage().length + 1);
  for (const address of addresses) expect(address).toMatch(/^\/(assets\/console-[\w-]+\.(js|css)|icon\.svg)$/);
  expect(page).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|\sstyle=/);
});

test('[U1] no script of the console writes HTML, evaluates text or stores anything', () => {
  const scripts = readdirSync(ASSETS).filter((name) => name.endsWith('.js'));
  expect(scripts.length).toBeGreaterThan(2);
  for (const name of scripts) {
    expect(readFileSync(join(ASSETS, name), 'utf8'), name).not.toMatch(
      /\beval\(|new Function\(|document\.write|localStorage|sessionStorage|document\.cookie|indexedDB/,
    );
  }
});
