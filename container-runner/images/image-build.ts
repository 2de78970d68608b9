/** What a tool's image is made of, as a job asks for it; refused before a byte of it is written. */
import { z } from 'zod';

import { limits } from '../limits.ts';

/** Relative, of plain names: nothing that leads out of the directory or is no file. */
const fileName = z
  .string()
  .max(255)
  .regex(/^(?!\.{1,2}(?:\/|$))[\w@+.-][\w@+. -]*(?:\/(?!\.{1,2}(?:\/|$))[\w@+.-][\w@+. -]*)*$/, {
    message: 'files: names are relative paths of plain characters, without ".."',
  });
/** A package by name and version: no options, no addresses, no paths. */
const requirement = z
  .string()
  .max(200)
  .regex(
    /^[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?\s*(?:(?:===|[<>=!~]=?)\s*[\w*][\w.*+!-]*\s*(?:,\s*(?:===|[<>=!~]=?)\s*[\w*][\w.*+!-]*\s*)*)?$/,
    {
      message: 'requirements: names with versions only, such as "pandas>=2,<3"',
    },
  );

export const DOCKERFILE = 'Dockerfile';

export const imageBuild = z
  .strictObject({
    /** What the image begins with, and what runs its entry point. */
    base: z.enum(['python3', 'shell', 'node']).default('python3'),
    /** Text by path; one called `Dockerfile` is followed instead of everything else. */
    files: z.record(fileName, z.string()),
    /** Path of the file that is run; the Dockerfile's where there is one. */
    entrypoint: z.string().max(255).default(''),
    requirements: z.array(requirement).max(limits.buildRequirements).default([]),
  })
  .check((context) => {
    const { files, entrypoint, requirements, base } = context.value;
    function refuse(field: string, message: string): void {
      context.issues.push({ code: 'custom', message, path: [field], input: context.value });
    }
    const names = Object.keys(files);
    if (names.length > limits.buildFiles)
      refuse('files', `at most ${limits.buildFiles} files (there are ${names.length})`);
    if (files[DOCKERFILE] === undefined && files[entrypoint] === undefined) {
      refuse('entrypoint', `must be one of the files (${names.slice(0, 5).join(', ')})`);
    }
    if (requirements.length > 0 && base !== 'python3') refuse('requirements', 'only images with python3 have packages');
  });

export type ImageBuild = z.infer<typeof imageBuild>;
