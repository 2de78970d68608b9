/**
 * `npm run bench:rehearsal`: forty tasks with models from careful to sloppy: the number of correct results, and the
 * additional cost of the errors.
 */
import { table, writeSection } from './report.ts';
import { FORTY, rehearse } from './rehearsal/rehearse.ts';
import type { Performance } from './rehearsal/rehearse.ts';

const performances: Performance[] = [];
for (const part of FORTY) performances.push(await rehearse(part));

const behaviours = [...new Set(performances.map(({ part }) => part.behaviour))];
const share = (played: readonly Performance[]): string =>
  `${played.filter(({ right }) => right).length} of ${played.length}`;
const mean = (values: readonly number[]): string =>
  (values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(values.some((value) => value > 100) ? 0 : 1);

const rows = behaviours.map((behaviour) => {
  const played = performances.filter(({ part }) => part.behaviour === behaviour);
  return [
    behaviour.name,
    share(played),
    String(behaviour.careful),
    mean(played.map(({ iterations }) => iterations)),
    mean(played.map(({ tokens }) => tokens)),
  ];
});
const extra = performances.map(({ part, iterations }) => iterations - part.behaviour.careful);
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
        `**${share(performances)}**`,
        mean(performances.map(({ part }) => part.behaviour.careful)),
        mean(performances.map(({ iterations }) => iterations)),
        mean(performances.map(({ tokens }) => tokens)),
      ],
    ],
  ),
  '',
  `A task needs at most ${Math.max(...extra)} iteration more than with a careful model; ${extra.filter((more) => more > 0).length} of the forty tasks needed it.`,
].join('\n');
writeSection('Rehearsal', 'npm run bench:rehearsal', body);
console.log(body);
if (performances.some(({ right }) => !right)) process.exitCode = 1;
