/** Builds the image of a tool or relic: a name, files with an entry point, or a folder with a Dockerfile. */
import type { ImageBuild } from '../../domain/manifests/program.ts';
import type { ToolInput } from '../schema/schema.ts';
import { runtimeOf } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { filesOfContext } from './image-context.ts';

type BuildInput = NonNullable<Extract<ToolInput['implementation'], { type: 'container' }>['build']> & {
  /** A folder with a Dockerfile; only relics have it. */
  readonly context?: string | undefined;
  readonly dockerfile?: string | undefined;
};

/** Requires exactly one of an image name and a build. */
export function toImage(
  written: { readonly image?: string | undefined; readonly build?: BuildInput | undefined },
  context: BuildContext,
): { readonly image: string | null; readonly build: ImageBuild | null } {
  const { image, build } = written;
  if ((image === undefined) === (build === undefined)) {
    context.addIssue(['implementation'], 'needs exactly one of "image" (a name) and "build" (its files)');
  }
  return { image: image ?? null, build: build === undefined ? null : toBuild(build, context) };
}

function toBuild(build: BuildInput, context: BuildContext): ImageBuild {
  const field = ['implementation', 'build'];
  const { context: folder, dockerfile } = build;
  const files: Record<string, string> =
    folder === undefined && dockerfile === undefined
      ? {}
      : filesOfContext({ folder: folder ?? '.', dockerfile: dockerfile ?? 'Dockerfile', field }, context);
  if (Array.isArray(build.files)) {
    for (const [index, path] of build.files.entries()) {
      const text = context.readFile(path, [...field, 'files', index]);
      // in the image, files are relative to the entry point's folder
      if (text !== null) files[inside(path, build.entrypoint)] = text;
    }
  } else Object.assign(files, build.files);
  let entrypoint = build.entrypoint ?? '';
  if (build.entrypoint !== undefined && !Object.hasOwn(files, entrypoint)) {
    entrypoint = inside(build.entrypoint, build.entrypoint);
    if (!Object.hasOwn(files, entrypoint)) {
      const text = context.readFile(build.entrypoint, [...field, 'entrypoint']);
      if (text !== null) files[entrypoint] = text;
    }
  }
  if (build.entrypoint === undefined && !Object.hasOwn(files, 'Dockerfile') && folder === undefined) {
    context.addIssue([...field, 'entrypoint'], 'is missing: the file to start');
  }
  const { requirements = [] } = build;
  return {
    base: build.base ?? runtimeOf(entrypoint) ?? 'python3',
    files,
    entrypoint,
    requirements: Array.isArray(requirements) ? requirements : readRequirements(requirements.file, context),
  };
}

/** Maps `./search/lib/a.py` to `lib/a.py` if the entry point is `./search/main.py`. */
function inside(path: string, entrypoint: string | undefined): string {
  const plain = path.replace(/^(\.{0,2}\/)+/, '');
  const folder = (entrypoint ?? '').replace(/^(\.{0,2}\/)+/, '').replace(/[^/]*$/, '');
  return folder !== '' && plain.startsWith(folder) ? plain.slice(folder.length) : plain;
}

function readRequirements(path: string, context: BuildContext): string[] {
  const text = context.readFile(path, ['implementation', 'build', 'requirements', 'file']) ?? '';
  return text
    .split('\n')
    .map((line) => line.replace(/#.*$/, '').trim())
    .filter((line) => line !== '');
}
