/**
 * Rewrites a tool's Dockerfile for the engine's builder. The builder itself would pull missing images and fetch the URLs
 * of `ADD`, regardless of network rules. It therefore gets only what this parser understands: known instructions, each on
 * one line, with allowed images.
 */

import { limits } from '../limits.ts';

/** Maps an image name in the Dockerfile to the engine's reference. @throws Error with a message for users */
export type ImageLookup = (name: string) => Promise<string>;

const SUPPORTED: ReadonlySet<string> = new Set(
  'FROM RUN COPY ENV ARG LABEL WORKDIR USER ENTRYPOINT CMD EXPOSE SHELL STOPSIGNAL VOLUME HEALTHCHECK'.split(' '),
);
const INSTRUCTION = /^[ \t]*([A-Za-z]+)(?:[ \t]+(.*))?$/s;
const FLAG = /^(--\S*)[ \t]*/;
const COPY_FLAG = /^--(?:(?:chown|chmod)=[\w:.-]+|from=([\w./:@-]+))$/;
const ESCAPE = /^[ \t]*#[ \t]*escape[ \t]*=[ \t]*(.*?)[ \t]*$/i;
/** White space that only some builders treat as a separator. */
const ODD_SPACE = /[^\S \t]|\u0085/;
/** A here-document: some builders would read the following lines as its text, others as instructions. */
const HERE_DOCUMENT = /(?:^|[\s\u0085])\d*<<-?[^<\s]/;
const QUOTED_CHARS = 100;

/**
 * @param mark a label for everything that is built; the Dockerfile's own labels are removed, so it cannot override this
 * @returns the Dockerfile without comments, one instruction per line, with image references from `lookUp`
 * @throws Error that names the rejected line and the reason
 */
export async function sanitizeDockerfile(
  dockerfile: string,
  lookUp: ImageLookup,
  mark: string | null = null,
): Promise<string> {
  /** Names of the stages so far, in the builder's normal form. */
  const stages: (string | null)[] = [];
  const lines: string[] = [];
  const instructions = instructionsOf(dockerfile);
  if (instructions.length > limits.buildInstructions) {
    throw new Error(`the Dockerfile has ${instructions.length} instructions (maximum ${limits.buildInstructions})`);
  }
  for (const { text, number } of instructions) {
    const [, word = '', rest = ''] = INSTRUCTION.exec(text) ?? [];
    const name = word.toUpperCase();
    const refuse = (why: string): never => {
      throw new Error(`line ${number} of the Dockerfile, "${text.trim().slice(0, QUOTED_CHARS)}": ${why}`);
    };
    if (name === 'ADD') refuse('ADD is not supported, because it fetches URLs; use COPY for files');
    if (!SUPPORTED.has(name)) refuse(`unsupported instruction (supported: ${[...SUPPORTED].join(', ')})`);
    if ((name === 'RUN' || name === 'COPY') && HERE_DOCUMENT.test(rest)) refuse('here-documents are not supported');
    if (name !== 'FROM' && name !== 'COPY') {
      if (name !== 'LABEL') lines.push(text);
      continue;
    }
    if (ODD_SPACE.test(text)) refuse('only spaces and tabs may separate its words');
    const lookUpHere = (image: string): Promise<string> =>
      lookUp(image).catch((fault: unknown) => refuse(fault instanceof Error ? fault.message : String(fault)));
    if (name === 'FROM') {
      const [image = '', as, stage, ...more] = rest.split(/[ \t]+/).filter(Boolean);
      if (image.startsWith('--') || (as !== undefined && as.toUpperCase() !== 'AS') || more.length > 0) {
        refuse('expected FROM image, or FROM image AS name');
      }
      const known = image === 'scratch' || stages.includes(image.toLowerCase());
      const ground = known ? image : await lookUpHere(image);
      lines.push(`FROM ${ground}${stage === undefined ? '' : ` AS ${stage}`}`);
      if (mark !== null) lines.push(`LABEL ${mark}`);
      stages.push(stage?.toLowerCase() ?? null);
      continue;
    }
    const flags: string[] = [];
    let left = rest;
    for (let flag = FLAG.exec(left); flag !== null; flag = FLAG.exec(left)) {
      const [whole, option = ''] = flag;
      const [followed, image] = COPY_FLAG.exec(option) ?? [];
      if (followed === undefined) refuse(`unsupported option ${option} (supported: --from, --chown, --chmod)`);
      // a stage cannot refer to itself: its own name is an image here
      const known = image === undefined || isStage(image, stages.slice(0, -1));
      flags.push(known ? option : `--from=${await lookUpHere(image)}`);
      left = left.slice(whole.length);
    }
    lines.push(['COPY', ...flags, left].join(' '));
  }
  return `${lines.join('\n')}\n`;
}

/** By name, or by number from 0. */
function isStage(name: string, stages: readonly (string | null)[]): boolean {
  return stages.includes(name.toLowerCase()) || (/^\d+$/.test(name) && Number(name) < stages.length);
}

/** Instructions without comments and empty lines, each on one line. */
function instructionsOf(dockerfile: string): { readonly text: string; readonly number: number }[] {
  const instructions: { readonly text: string; readonly number: number }[] = [];
  let open: { text: string; readonly number: number } | null = null;
  for (const [at, line] of dockerfile
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const number = at + 1;
    // builders differ in whether it is part of the line break
    if (line.includes('\r')) throw new Error(`line ${number} of the Dockerfile contains a carriage return`);
    const escape = ESCAPE.exec(line)?.[1];
    if (escape !== undefined && escape !== '\\') {
      throw new Error(`line ${number} of the Dockerfile: the escape character must be the backslash`);
    }
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [, before, double] = /^(.*?)(\\?)\\[ \t]*$/s.exec(line) ?? [];
    // builders differ in whether the line continues
    if (double === '\\') throw new Error(`line ${number} of the Dockerfile ends with two backslashes`);
    open ??= { text: '', number };
    open.text += before ?? line;
    if (before !== undefined) continue;
    instructions.push(open);
    open = null;
  }
  if (open !== null) instructions.push(open);
  const unfinished = instructions.find(({ text }) => /\\[ \t]*$/.test(text));
  if (unfinished !== undefined) throw new Error(`line ${unfinished.number} of the Dockerfile ends with a backslash`);
  return instructions;
}
