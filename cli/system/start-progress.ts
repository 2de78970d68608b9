/** Progress that `npm start` shows while the runner builds its images: name, number and elapsed time. */
import { startLimits } from './start-limits.ts';

interface Image {
  readonly name: string;
  readonly state: string;
  readonly elapsedMs: number;
}

/**
 * @param say receives a line when an image starts and ends, and one every `startLimits.progressMs` in between
 * @returns a function that takes the body of the runner's `/health`
 */
export function imageProgress(say: (line: string) => void): (health: unknown) => void {
  const told = new Map<string, { state: string; elapsedMs: number }>();
  return (health) => {
    const images = imagesOf(health);
    const done = images.filter(({ state }) => state === 'ready' || state === 'failed').length;
    for (const { name, state, elapsedMs } of images) {
      const before = told.get(name);
      const isNews =
        state === 'building' && (before?.state !== state || elapsedMs - before.elapsedMs >= startLimits.progressMs);
      const hasEnded = before?.state === 'building' && state !== 'building';
      if (isNews || state !== 'building') told.set(name, { state, elapsedMs });
      const seconds = `${(elapsedMs / 1_000).toFixed(0)} s`;
      if (isNews) say(`building the image ${name} (${done + 1} of ${images.length}, ${seconds}) …`);
      if (hasEnded)
        say(
          `the image ${name} ${state === 'ready' ? 'is built' : 'could not be built'} (${done} of ${images.length}, ${seconds})`,
        );
    }
  };
}

function imagesOf(health: unknown): Image[] {
  const starting = member(health, 'starting');
  const images = member(starting, 'images');
  if (!Array.isArray(images)) return [];
  return images.map((image: unknown) => ({
    name: String(member(image, 'name')),
    state: String(member(image, 'state')),
    elapsedMs: Number(member(image, 'elapsed_ms')),
  }));
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
