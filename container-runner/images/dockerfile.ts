/**
 * A tool's Dockerfile, as the engine's builder may follow it. The builder itself fetches what it is told to:
 * images that are not there, and addresses that `ADD` names, past every rule about networks. So it gets to see
 * only what was understood here: known instructions, each on one line, on images that may be used.
 */

import { limits } from '../limits.ts';

/** The Dockerfile's images by the names that the engine has for them. @throws Error in words for people */
export type ImageLookup = (name: string) => Promise<string>;

const FOLLOWED: ReadonlySet<string> = new Set(
  'FROM RUN COPY ENV ARG LABEL WORKDIR USER ENTRYPOINT CMD EXPOSE SHELL STOPSIGNAL VOLUME HEALTHCHECK'.split(' '),
);
const INSTRUCTION = /^[ \t]*([A-Za-z]+)(?:[ \t]+(.*))?$/s;
const FLAG = /^(--\S*)[ \t]*/;
const COPY_FLAG = /^--(?:(?:chown|chmod)=[\w:.-]+|from=([\w./:@-]+))$/;
const ESCAPE = /^[ \t]*#[ \t]*escape[ \t]*=[ \t]*(.*?)[ \t]*$/i;
/** White space that the builder may take for some, and others may not. */
const ODD_SPACE = /[^\S \t]|\u0085/;
/** What makes the lines that follow a text, for builders that know it; an instruction in them would not be one. */
const HERE_DOCUMENT = /(?:^|[\s\u0085])\d*<<-?[^<\s]/;
const QUOTED_CHARS = 100;

/**
 * @param mark a label for everything that is built; labels of the Dockerfile's own are left out, so that it stays
 * @returns the same without comments, one instruction a line, with the names of images as `lookUp` gives them
 * @throws Error that names the line that is not followed, and why
 */
export async function followable(dockerfile: string, lookUp: ImageLookup, mark: string | null = null): Promise<string> {
  /** Names of the stages so far, as the builder compares them. */
  const stages: (string | null)[] = [];
  const lines: string[] = [];
  const instructions = instructionsOf(dockerfile);
  if (instructions.length > limits.buildInstructions) {
    throw new Error(`the Dockerfile has ${instructions.length} instructions (allowed: ${limits.buildInstructions})`);
  }
  for (const { text, number } of instructions) {
    const [, word = '', rest = ''] = INSTRUCTION.exec(text) ?? [];
    const name = word.toUpperCase();
    const refuse = (why: string): never => {
      throw new Error(`line ${number} of the Dockerfile, "${text.trim().slice(0, QUOTED_CHARS)}": ${why}`);
    };
    if (name === 'ADD') refuse('ADD is not followed, since it fetches addresses; COPY takes files');
    if (!FOLLOWED.has(name)) refuse(`not followed (followed are ${[...FOLLOWED].join(', ')})`);
    if ((name === 'RUN' || name === 'COPY') && HERE_DOCUMENT.test(rest)) refuse('here-documents are not followed');
    if (name !== 'FROM' && name !== 'COPY') {
      if (name !== 'LABEL') lines.push(text);
      continue;
    }
    if (ODD_SPACE.test(text)) refuse('only blanks and tabs may separate its words');
    const lookUpHere = (image: string): Promise<string> =>
      lookUp(image).catch((fault: unknown) => refuse(fault instanceof Error ? fault.message : String(fault)));
    if (name === 'FROM') {
      const [image = '', as, stage, ...more] = rest.split(/[ \t]+/).filter(Boolean);
      if (image.startsWith('--') || (as !== undefined && as.toUpperCase() !== 'AS') || more.length > 0) {
        refuse('this FROM is not understood: an image, or an image AS a name');
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
      if (followed === undefined) refuse(`the option ${option} is not followed (--from, --chown and --chmod are)`);
      // of its own stage the builder knows nothing yet: that name is an image's
      const known = image === undefined || isStage(image, stages.slice(0, -1));
      flags.push(known ? option : `--from=${await lookUpHere(image)}`);
      left = left.slice(whole.length);
    }
    lines.push(['COPY', ...flags, left].join(' '));
  }
  return `${lines.join('\n')}\n`;
}

/** By its name, or its number from 0. */
function isStage(name: string, stages: readonly (string | null)[]): boolean {
  return stages.includes(name.toLowerCase()) || (/^\d+$/.test(name) && Number(name) < stages.length);
}

/** Instructions without comments and empty lines, each in one line. */
function instructionsOf(dockerfile: string): { readonly text: string; readonly number: number }[] {
  const instructions: { readonly text: string; readonly number: number }[] = [];
  let open: { text: string; readonly number: number } | null = null;
  for (const [at, line] of dockerfile
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const number = at + 1;
    // builders differ in whether it belongs to the end of the line
    if (line.includes('\r')) throw new Error(`line ${number} of the Dockerfile has a carriage return inside`);
    const escape = ESCAPE.exec(line)?.[1];
    if (escape !== undefined && escape !== '\\') {
      throw new Error(`line ${number} of the Dockerfile: the escape character is always the backslash here`);
    }
    if (/^\s*(?:#|$)/.test(line)) continue;
    const [, before, double] = /^(.*?)(\\?)\\[ \t]*$/s.exec(line) ?? [];
    // builders differ in whether that goes on
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
