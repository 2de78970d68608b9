import type { FilePart } from '../../../src/domain/content.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Observation, ShownMarker } from '../observation.ts';
import { bytesOf, hashOf } from '../world/files.ts';
import { imageOf } from '../world/targets.ts';
import { factsOf } from './invariant.ts';
import type { FactOf, Invariant } from './invariant.ts';

export const imagesShown: Invariant = {
  name: 'images shown',
  holds:
    'Every request has the images and files of all messages and results that it shows, in order and with their bytes, also after a crash; never their base64.',
  *check(seen) {
    const sent = new Map(factsOf(seen, 'message_sent').map(({ message, files }) => [message, files]));
    const hashes = new Map([...sent.values()].flat().map(({ name, sha256 }) => [name, sha256]));
    for (const fact of factsOf(seen, 'files_shown')) {
      const where = `call ${fact.call} of message ${fact.message}`;
      for (const problem of problemsOf(fact, sent, hashes)) yield `${where} ${problem}`;
    }
    yield* otherArtifacts(seen);
  },
};

function* problemsOf(
  { messages, results, markers, attached, texts, isRaw }: FactOf<'files_shown'>,
  sent: ReadonlyMap<number, readonly FilePart[]>,
  hashes: ReadonlyMap<string, string>,
): Generator<string> {
  if (isRaw) yield 'has base64 in its text';
  const ofResults = markers.filter(({ artifact }) => artifact !== '').length;
  if (ofResults !== results) yield `has ${results} results with images and ${ofResults} markers of results`;
  const files = messages.flatMap((number) => sent.get(number) ?? []);
  const expected = files.map(({ type, name, media_type: mediaType, size }) => ({ type, name, mediaType, size }));
  const placed = markers.filter(({ artifact }) => artifact === '').map(({ artifact: _none, ...marker }) => marker);
  if (JSON.stringify(placed) !== JSON.stringify(expected)) {
    yield `shows the files ${JSON.stringify(placed)} (expected: ${JSON.stringify(expected)})`;
  }
  const images = markers.filter(({ mediaType }) => mediaType.startsWith('image/'));
  yield* differences('attached', attached, newest(images, attached.length, limits.attachmentsPerRequest));
  const written = markers.filter(({ mediaType, artifact }) => artifact === '' && mediaType === 'text/plain');
  yield* differences('written', texts, newest(written, texts.length, limits.attachedTextsPerRequest));
  for (const { name, hash } of [...attached, ...texts]) {
    const own = hashes.get(name) ?? hashOf(bytesOf(imageOf(name.replace(/\.png$/, '')).bytes));
    if (hash !== own) yield `has other bytes of ${name}`;
  }
}

/** Beyond the budget, the oldest are left out. */
function newest(markers: readonly ShownMarker[], count: number, most: number): readonly ShownMarker[] {
  return markers.length > most && count > 0 ? markers.slice(-count) : markers;
}

function* differences(
  how: string,
  shown: readonly { readonly name: string }[],
  expected: readonly { readonly name: string }[],
): Generator<string> {
  const [one, other] = [shown, expected].map((list) => list.map(({ name }) => name).join(', '));
  if (one !== other) yield `has ${how} the files ${one} for the markers ${other}`;
}

/** An artifact is one file of one result, in all requests. */
function* otherArtifacts(seen: Observation): Generator<string> {
  const known = new Map<string, string>();
  for (const { message, call, markers } of factsOf(seen, 'files_shown')) {
    const where = `call ${call} of message ${message}`;
    for (const { name, artifact } of markers) {
      if (artifact === '') continue;
      // The id ends with the event and the number of the file.
      const event = Number(artifact.split('_').at(-2));
      const source = seen.events.find(({ seq }) => seq === event);
      if (seen.isWhole && source?.type !== 'action_completed') yield `${where}: ${artifact} is no result`;
      const before = known.get(artifact) ?? name;
      known.set(artifact, before);
      if (before !== name) yield `${where}: ${artifact} is ${name}, and was ${before}`;
    }
  }
}
