/** The deletion of a session whose id may be used again (T5). */
import { describe, expect, test } from 'vitest';
import { SessionDeletion } from '../../../src/engine/session/session-deletion.ts';

class FakeSession {
  readonly name: string;
  readonly log: string[];

  constructor(name: string, log: string[]) {
    this.name = name;
    this.log = log;
  }

  close(): Promise<void> {
    this.log.push(`close ${this.name}`);
    return Promise.resolve();
  }
}

function room(forget: () => Promise<void> = () => Promise.resolve()) {
  const log: string[] = [];
  const object = { session: new FakeSession('first', log) };
  const deletion = new SessionDeletion({
    current: () => object.session,
    forget,
    clear: () => {
      log.push(`clear ${object.session.name}`);
      return Promise.resolve();
    },
    reopen: () => {
      object.session = new FakeSession('second', log);
    },
  });
  return { log, object, deletion };
}

describe('[T5] the deletion of a session', () => {
  test('closes the session before anything is deleted', async () => {
    const { log, object, deletion } = room();
    await deletion.delete(object.session);
    expect(log).toEqual(['close first', 'clear first']);
  });

  test('that comes late leaves the session that was made again', async () => {
    const { log, object, deletion } = room();
    const first = object.session;
    await deletion.delete(first);
    await deletion.delete(first);
    expect(log).toEqual(['close first', 'clear first']);
  });

  test('happens once, and all who want it wait for its end', async () => {
    const forgotten = Promise.withResolvers<void>();
    const { log, object, deletion } = room(() => forgotten.promise);
    const first = object.session;
    const deletions = [deletion.delete(first), deletion.delete(first)];
    forgotten.resolve();
    await Promise.all(deletions);
    expect(log).toEqual(['close first', 'clear first']);
  });

  test('can be repeated after it has failed', async () => {
    let isBroken = true;
    const { log, object, deletion } = room(() =>
      isBroken ? Promise.reject(new Error('no answer')) : Promise.resolve(),
    );
    await expect(deletion.delete(object.session)).rejects.toThrow('no answer');
    isBroken = false;
    await deletion.delete(object.session);
    expect(log).toEqual(['close first', 'close second', 'clear second']);
  });
});
