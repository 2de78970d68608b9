import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { setAsideDamaged, setAsideNames } from '../../cli/system/damaged-databases.ts';
import { folderOfEach } from './scene.ts';

let folder: string;
folderOfEach((made) => (folder = made));

test('[S10] an invalid database file is renamed together with its log, and nothing is deleted', () => {
  const objects = join(folder, 'v3', 'do', 'catalogs');
  mkdirSync(objects, { recursive: true });
  const good = new DatabaseSync(join(objects, 'good.sqlite'));
  good.exec('CREATE TABLE t (n)');
  good.close();
  writeFileSync(join(objects, 'new.sqlite'), '');
  writeFileSync(join(objects, 'bad.sqlite'), 'garbage, and more of it');
  writeFileSync(join(objects, 'bad.sqlite-wal'), 'its log');
  writeFileSync(join(objects, 'short.sqlite'), 'SQL');
  writeFileSync(join(objects, 'notes.txt'), 'not a database');
  const kept = setAsideDamaged(folder, 'now');
  expect(kept.toSorted()).toEqual([
    'v3/do/catalogs/bad.sqlite.set-aside-now',
    'v3/do/catalogs/short.sqlite.set-aside-now',
  ]);
  expect(readdirSync(objects).toSorted()).toEqual([
    'bad.sqlite.set-aside-now',
    'bad.sqlite.set-aside-now-wal',
    'good.sqlite',
    'new.sqlite',
    'notes.txt',
    'short.sqlite.set-aside-now',
  ]);
  expect(readFileSync(join(objects, 'bad.sqlite.set-aside-now'), 'utf8')).toBe('garbage, and more of it');
  expect(setAsideDamaged(folder, 'later')).toEqual([]);
  expect(setAsideNames(folder).toSorted()).toEqual(kept.toSorted());
});

test('[S10] renamed files are listed until they are removed, newest first, at most 20', () => {
  const times = Array.from({ length: 21 }, (_, at) => `2026-01-${String(at + 1).padStart(2, '0')}`);
  for (const [at, time] of times.entries()) {
    writeFileSync(join(folder, `${20 - at}.sqlite`), 'garbage');
    setAsideDamaged(folder, time);
  }
  expect(setAsideNames(folder)).toEqual(
    times
      .map((time, at) => `${20 - at}.sqlite.set-aside-${time}`)
      .toReversed()
      .slice(0, 20),
  );
  expect(setAsideNames(join(folder, 'missing'))).toEqual([]);
});

test('[S10] a state folder that does not exist lists nothing', () => {
  expect(setAsideDamaged(join(folder, 'missing'), 'now')).toEqual([]);
});
