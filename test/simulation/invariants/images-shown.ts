import { limits } from '../../../src/domain/limits.ts';
import { imageOf } from '../world/targets.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

export const imagesShown: Invariant = {
  name: 'images shown',
  holds:
    'Every request has the images of all messages and results that it shows, in order and with their bytes, also after a crash; never their base64.',
  *check(seen) {
    /** The image of each artifact, over all requests. */
    const known = new Map<string, string>();
    for (const { message, call, results, markers, attached, isRaw } of factsOf(seen, 'images_shown')) {
      const where = `call ${call} of message ${message}`;
      if (isRaw) yield `${where} has base64 in its text`;
      if (markers.length !== results)
        yield `${where} has ${results} messages and results with images and ${markers.length} markers`;
      // Beyond the budget, the oldest are left out.
      const expected = markers.length > limits.attachmentsPerRequest ? markers.slice(-attached.length) : markers;
      const names = expected.map(({ name }) => name).join(', ');
      const shown = attached.map(({ name }) => name).join(', ');
      if (names !== shown || (markers.length > 0 && attached.length === 0)) {
        yield `${where} has the images ${shown} for the markers ${names}`;
      }
      for (const { name, bytes } of attached) {
        if (bytes !== imageOf(name.replace(/\.png$/, '')).bytes) yield `${where}: the bytes of ${name} are ${bytes}`;
      }
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
  },
};
