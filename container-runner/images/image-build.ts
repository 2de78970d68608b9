/** Validates the build of a tool's image in a job request. */
import { z } from 'zod';

import { limits } from '../limits.ts';

/** Relative paths of plain characters that stay in the directory. */
const fileName = z
  .string()
  .max(255)
  .regex(/^(?!\.{1,2}(?:\/|$))[\w@+.-][\w@+. -]*(?:\/(?!\.{1,2}(?:\/|$))[\w@+.-][\w@+. -]*)*$/, {
    message: 'files: names are relative paths of plain characters, without ".."',
  });
/** A package with version, without options, URLs and paths. */
export const requirement = z
  .string()
  .max(200)
  .regex(
    /^[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?\s*(?:(?:===|[<>=!~]=?)\s*[\w*][\w.*+!-]*\s*(?:,\s*(?:===|[<>=!~]=?)\s*[\w*][\w.*+!-]*\s*)*)?$/,
    {
      message: 'requirements: must be package names with versions, for example "pandas>=2,<3"',
    },
  );

export const DOCKERFILE = 'Dockerfile';

export const imageBuild = z
  .strictObject({
    /** The base image, and the interpreter of the entry point. */
    base: z.enum(['python3', 'shell', 'node']).default('python3'),
    /** Text by path; if there is a `Dockerfile`, it replaces all other fields. */
    files: z.record(fileName, z.string()),
    /** Path of the file to run; not used with a Dockerfile. */
    entrypoint: z.string().max(255).default(''),
    requirements: z.array(requirement).max(limits.buildRequirements).default([]),
  })
  .check((context) => {
    const { files, entrypoint, requirements, base } = context.value;
    function refuse(field: string, message: string): void {
      context.issues.push({ code: 'custom', message, path: [field], input: context.value });
    }
    const names = Object.keys(files);
    if (names.length > limits.buildFiles) refuse('files', `${names.length} files (maximum ${limits.buildFiles})`);
    if (files[DOCKERFILE] === undefined && files[entrypoint] === undefined) {
      refuse('entrypoint', `must be one of the files (${names.slice(0, 5).join(', ')})`);
    }
    if (requirements.length > 0 && base !== 'python3') refuse('requirements', 'requires the base python3');
  });

export type ImageBuild = z.infer<typeof imageBuild>;
