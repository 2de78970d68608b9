/**
 * `type="docker"`: a command in an image on the runner; values are passed as environment variables, never as text
 * (P14).
 */
import type { JsonObject } from '../domain/json.ts';
import type { Executor } from './executor.ts';
import { wrongParameter } from './failure.ts';
import { recoverJob, runJob } from './runner/job.ts';

/** An image name that the engine accepts: `busybox`, `library/python:3.13`, `registry.example:5000/a/b@sha256:…`. */
const IMAGE =
  /^[a-z0-9][a-z0-9._-]*(?::\d{1,5})?(?:\/[a-z0-9][a-z0-9._-]*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
const IMAGE_CHARS = 255;

export const dockerExecutor: Executor = {
  async execute(call, context) {
    const { image, command } = call.parameters;
    if (typeof image !== 'string' || image.length > IMAGE_CHARS || !IMAGE.test(image))
      return wrongParameter('image', 'the name of an image, such as "python:3.13"', image);
    // Without a command, the image's own command runs.
    const line = command ?? '';
    if (typeof line !== 'string' || (command !== undefined && line.trim() === ''))
      return wrongParameter('command', 'a command line', command);
    const args = argumentsOf(call.parameters);
    if (args === null) return wrongParameter('args', 'a list of strings', call.parameters['args']);
    return await runJob(call, context, {
      kind: 'docker',
      code: line,
      runtime: null,
      image,
      args,
      inputs: call.inputs,
    });
  },
  recover: recoverJob,
};

/** Models write numbers and booleans where strings are expected. */
function argumentsOf({ args = [] }: JsonObject): string[] | null {
  if (!Array.isArray(args)) return null;
  const texts = args.flatMap((arg) =>
    typeof arg === 'string' || typeof arg === 'number' || typeof arg === 'boolean' ? [String(arg)] : [],
  );
  return texts.length === args.length ? texts : null;
}
