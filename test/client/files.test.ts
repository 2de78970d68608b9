/** The client's functions for the files of a session (C7, K3). */
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { archiveFiles, listFiles, readFile, removeFile, writeFile } from '../../src/client/files.ts';
import { bodyBytes } from '../http/workspace-kit.ts';
import { sessionKit } from '../support/session-kit.ts';
import { clientOf } from './client-kit.ts';

const text = async (response: Promise<Response>): Promise<string> => await (await response).text();

describe('[C7] files of the client', () => {
  test('are written, listed, read and removed', async () => {
    const { session, requests } = clientOf(await sessionKit());
    const written = await writeFile(session, 'data/Łódź 1%.csv', 'a,b\n', { ifNew: true, executable: true });
    expect(written).toMatchObject({ path: 'data/Łódź 1%.csv', size: 4, executable: true });
    await writeFile(session, 'b', new Blob(['blob']));
    await writeFile(session, 'c', Uint8Array.of(1, 2, 3));
    await writeFile(session, 'd', '');
    const { files, bytes } = await listFiles(session);
    expect([files.map(({ path }) => path), bytes]).toEqual([['b', 'c', 'd', 'data/Łódź 1%.csv'], 11]);
    expect((await listFiles(session, { prefix: 'data' })).files).toEqual([written]);
    expect(await text(readFile(session, written.path))).toBe('a,b\n');
    expect(await text(readFile(session, written.path, { range: 'bytes=2-' }))).toBe('b\n');
    expect(await bodyBytes(readFile(session, 'c'))).toEqual(Uint8Array.of(1, 2, 3));
    expect((await bodyBytes(archiveFiles(session))).subarray(0, 2)).toEqual(new TextEncoder().encode('PK'));
    await expect(removeFile(session, 'data')).rejects.toMatchObject({ code: 'unknown_file' });
    expect(await removeFile(session, 'data', { recursive: true })).toEqual([written.path]);
    expect(await removeFile(session, 'b')).toEqual(['b']);
    expect(requests[0]).toBe('PUT /files/data/%C5%81%C3%B3d%C5%BA%201%25.csv?executable=true');
  });

  test('are changed only in the version that the caller knows', async () => {
    const { session } = clientOf(await sessionKit());
    const { sha256 } = await writeFile(session, 'a', 'one');
    const failed = { code: 'precondition_failed', status: 412 };
    await expect(writeFile(session, 'a', 'two', { ifNew: true })).rejects.toMatchObject(failed);
    const second = await writeFile(session, 'a', 'two', { ifMatch: sha256 });
    await expect(writeFile(session, 'a', 'three', { ifMatch: sha256 })).rejects.toMatchObject(failed);
    await expect(removeFile(session, 'a', { ifMatch: sha256 })).rejects.toMatchObject(failed);
    expect(await removeFile(session, 'a', { ifMatch: second.sha256 })).toEqual(['a']);
  });

  test('a change whose answer was lost is repeated, and is no conflict with itself', async () => {
    const kit = await sessionKit();
    const { session } = clientOf(kit, ['lost', null, null, 'lost', null]);
    expect(await writeFile(session, 'a', 'one', { ifNew: true })).toMatchObject({ path: 'a', size: 3 });
    expect(await removeFile(session, 'a')).toEqual(['a']);
    expect(kit.session.workspace.list()).toEqual([]);
  });

  test('a repeated change that meets the change of somebody else fails', async () => {
    const kit = await sessionKit();
    await kit.session.workspace.write([{ path: 'a', bytes: new Uint8Array([1]) }]);
    const { session } = clientOf(kit, ['refused']);
    await expect(writeFile(session, 'a', 'one', { ifNew: true })).rejects.toMatchObject({
      code: 'precondition_failed',
    });
  });

  test.each(['..', '../a', 'a/../../message', './a'])(
    'the path "%s" is refused before anything is sent',
    async (path) => {
      const { session, requests } = clientOf(await sessionKit());
      await expect(readFile(session, path)).rejects.toMatchObject({ code: 'invalid_request' });
      await expect(writeFile(session, path, 'x')).rejects.toMatchObject({ code: 'invalid_request' });
      await expect(removeFile(session, path)).rejects.toMatchObject({ code: 'invalid_request' });
      expect(requests).toEqual([]);
    },
  );
});

test('[K3] the functions for files need no module of another folder or package', async () => {
  const { metafile } = await build({
    entryPoints: ['src/client/files.ts'],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'neutral',
  });
  expect(Object.keys(metafile.inputs).filter((file) => !file.startsWith('src/client/'))).toEqual([]);
});
