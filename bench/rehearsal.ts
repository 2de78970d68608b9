/**
 * `npm run bench:rehearsal`: forty tasks with models from careful to sloppy: the number of correct results, and the
 * additional cost of the errors.
 */
import { table, writeSection } from './report.ts';
import { REHEARSALS, rehearse } from './rehearsal/rehearse.ts';
import type { RehearsalResult } from './rehearsal/rehearse.ts';

const results: RehearsalResult[] = [];
for (const rehearsal of REHEARSALS) results.push(await rehearse(rehearsal));

const behaviours = [...new Set(results.map(({ rehearsal }) => rehearsal.behaviour))];
const share = (ofBehaviour: readonly RehearsalResult[]): string =>
  `${ofBehaviour.filter(({ right }) => right).length} of ${ofBehaviour.length}`;
const mean = (values: readonly number[]): string =>
  (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(values.some((value) => value > 100) ? 0 : 1);

const rows = behaviours.map((behaviour) => {
  const ofBehaviour = results.filter(({ rehearsal }) => rehearsal.behaviour === behaviour);
  return [
    behaviour.name,
    share(ofBehaviour),
    String(behaviour.careful),
    mean(ofBehaviour.map(({ iterations }) => iterations)),
    mean(ofBehaviour.map(({ tokens }) => tokens)),
  ];
});
const extra = results.map(({ rehearsal, iterations }) => iterations - rehearsal.behaviour.careful);
const body = [
  'Eight kinds of tasks with the built-in tools. Scripted models solve them over HTTP, in the chunk format of each provider preset',
  'in turn (`bench/rehearsal/`). Engine, parser, scheduler, tools and journal are the real ones. A script knows only what the',
  'runtime tells it, so a task is solved only if this information is sufficient. Tokens are estimated at four bytes each. Every',
  'iteration includes the system prompt, which costs less with a provider that caches it.',
  '',
  table(
    ['behaviour of the model', 'solved', 'iterations of a careful model', 'iterations', 'tokens'],
    [
      ...rows,
      [
        '**all**',
        `**${share(results)}**`,
        mean(results.map(({ rehearsal }) => rehearsal.behaviour.careful)),
        mean(results.map(({ iterations }) => iterations)),
        mean(results.map(({ tokens }) => tokens)),
      ],
    ],
  ),
  '',
  `A task needs at most ${Math.max(...extra)} iteration more than with a careful model; ${extra.filter((more) => more > 0).length} of the forty tasks needed it.`,
].join('\n');
writeSection('Rehearsal', 'npm run bench:rehearsal', body);
console.log(body);
if (results.some(({ right }) => !right)) process.exitCode = 1;
