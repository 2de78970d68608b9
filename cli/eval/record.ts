/** `cortex eval record`: adds a case, made of a recorded run, to a dataset (O3). */
import { existsSync } from 'node:fs';
import { Document, isSeq, parseDocument } from 'yaml';
import { messageOf } from '../../src/domain/errors.ts';
import { EXIT, UsageError } from '../command.ts';
import type { CommandCall, ExitCode } from '../command.ts';
import { readInput } from '../input-file.ts';
import { textOption } from '../option-values.ts';
import { requireWritable } from '../output-file.ts';
import { writeNamed } from '../project/real-path.ts';
import { linesOfSource } from '../terminal/exported-lines.ts';
import { visible } from '../terminal/visible.ts';
import { readDataset } from './dataset.ts';
import type { Dataset, EvalCase } from './dataset.ts';
import { draftCase } from './draft-case.ts';
import { readRecording } from './recording.ts';

/** Options of an evaluation. */
const OF_EVALUATIONS =
  'agent repeat concurrency compare fail-on model base-url script judge-agent judge-model judge-base-url'.split(' ');

export async function recordCase(call: CommandCall, source: string): Promise<ExitCode> {
  const foreign = OF_EVALUATIONS.find((name) => textOption(call, name) !== undefined);
  if (foreign !== undefined) throw new UsageError(`eval record has no option --${foreign}`);
  const out = textOption(call, 'out');
  if (out !== undefined) requireWritable('--out', out);
  const existing = out !== undefined && existsSync(out) ? existingAt(out) : null;
  const recording = await readRecording(linesOfSource(source, call), textOption(call, 'run'));
  const names = new Set(existing?.dataset.cases.map(({ name }) => name));
  const agent = existing === null ? recording.agent : (existing.dataset.agent ?? null);
  const drafted = draftCase(recording, names, agent);
  const comment = ` Recorded from ${visible(recording.session_id)}, ${visible(recording.run_id)}. Edit what is expected.`;
  const text =
    existing === null ? newDataset(recording.agent, drafted, comment) : added(existing.text, drafted, comment);
  // What is written must be readable.
  readDataset(text);
  for (const note of recording.notes) call.tell(`note: ${visible(note)}`);
  if (recording.status !== 'completed') call.tell(`note: the run is ${recording.status}: say what is expected instead`);
  if (out === undefined) call.print(call.json ? JSON.stringify({ file: null, case: drafted }) : text.trimEnd());
  else {
    writeNamed(out, text);
    const { name } = drafted;
    call.print(
      call.json ? JSON.stringify({ file: out, case: drafted }) : `added "${visible(name)}" to ${visible(out)}`,
    );
  }
  return EXIT.ok;
}

/** @throws UsageError for a file that is not a dataset */
function existingAt(file: string): { readonly text: string; readonly dataset: Dataset } {
  const text = readInput(file);
  try {
    return { text, dataset: readDataset(text) };
  } catch (fault) {
    throw new UsageError(`${visible(file)}: ${messageOf(fault)}`, { cause: fault });
  }
}

function newDataset(agent: string, drafted: EvalCase, comment: string): string {
  const document = new Document({ agent, cases: [] });
  return added(String(document), drafted, comment);
}

/** Adds the case at the end; comments and the order of the file are kept. */
function added(text: string, drafted: EvalCase, comment: string): string {
  const document = parseDocument(text);
  const cases = document.get('cases');
  if (!isSeq(cases)) throw new Error('the dataset has no list of cases');
  cases.flow = false;
  const node = document.createNode(written(drafted));
  node.commentBefore = comment;
  cases.add(node);
  return document.toString({ lineWidth: 0, blockQuote: 'literal' });
}

/** Judges as drafted, in their short form. */
function written({ expect, ...one }: EvalCase): unknown {
  return { ...one, expect: expect.map((each) => (each.judge === undefined ? each : { judge: each.judge.criteria })) };
}
