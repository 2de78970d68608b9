import type { Observation } from '../observation.ts';
import { refusalsOf } from '../world/files.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const filesStored: Invariant = {
  name: 'files stored',
  holds:
    'Every stored message and every path of the workspace has the bytes of its files, under their hash; a message that was refused or lost leaves neither a run nor a file.',
  *check(seen) {
    for (const { at, references, files } of factsOf(seen, 'files_stored')) {
      const stored = new Set(files.map(({ name }) => name));
      const needed = new Set(references);
      for (const { name, hash } of files) {
        if (hash !== name) yield `at ${at} ms, the bytes of the file ${name} have the hash ${hash}`;
        if (!needed.has(name)) yield `at ${at} ms, the file ${name} belongs to no message and no path`;
      }
      for (const name of references) if (!stored.has(name)) yield `at ${at} ms, the file ${name} has no bytes`;
    }
    yield* refused(seen);
  },
};

function* refused(seen: Observation): Generator<string> {
  const answers = Map.groupBy(factsOf(seen, 'message_answered'), ({ message }) => message);
  const stored = new Set(seen.messageOf.values());
  for (const [message, facts] of answers) {
    const script = seen.history.messages[message];
    if (script?.type !== 'message') continue;
    const refusals = refusalsOf(script.files);
    const isAccepted = facts.some(({ code }) => code === 'accepted');
    if (isAccepted && refusals.size > 0)
      yield `message ${message} was accepted (expected: ${[...refusals].join(', ')})`;
    // Without each answer, it is not known whether it was accepted.
    const isKnown =
      facts.length === (script.repeats ? 2 : 1) &&
      // It is of the session that was deleted meanwhile.
      facts.every(({ code }) => code !== 'unknown_session');
    if (isKnown && !isAccepted && stored.has(message)) yield `message ${message} was refused, and has a run`;
  }
}
