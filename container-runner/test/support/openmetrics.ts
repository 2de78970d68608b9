/** A strict reader of OpenMetrics 1.0: throws at the first line that breaks the specification (O2). */

export interface Exemplar {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly timestamp: number | null;
}

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly exemplar: Exemplar | null;
}

export interface Family {
  readonly name: string;
  type: string;
  unit: string | null;
  help: string | null;
  readonly samples: Sample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABELS = String.raw`\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:,(?!\})|(?=\})))*\}`;
const NUMBER = String.raw`[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`;
const VALUE = String.raw`(?:${NUMBER}|[+-]Inf|NaN)`;
const METADATA = new RegExp(`^# (TYPE|UNIT|HELP) (${NAME}) (.*)$`);
const SAMPLE = new RegExp(
  `^(${NAME})(${LABELS})? (${VALUE})(?: (${NUMBER}))?(?: # (${LABELS}) (${NUMBER})(?: (${NUMBER}))?)?$`,
);
const HELP = /^(?:[^"\\\n]|\\["\\n])*$/;
/** Suffixes of samples by the type of their family. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total', '_created'],
  gauge: [''],
  histogram: ['_bucket', '_count', '_sum', '_created'],
  unknown: [''],
};
/** Code points of the names and values of an exemplar's labels. */
const EXEMPLAR_CHARS = 128;

/** @throws Error with the line and what is wrong with it */
export function parseOpenMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n# EOF\n')) throw new Error('it does not end with "# EOF" and a line break');
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let current = null as Family | null;
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    const [, kind, named = '', rest = ''] = METADATA.exec(line) ?? [];
    if (kind !== undefined) {
      if (current?.name !== named) {
        if (families.has(named)) fail('the family was interrupted');
        current = { name: named, type: 'unknown', unit: null, help: null, samples: [] };
        families.set(named, current);
      }
      if (current.samples.length > 0) fail('metadata after samples');
      describe(current, kind, rest, fail);
      continue;
    }
    const [, name = '', labelText, value = '', timestamp, exemplarLabels, exemplarValue, exemplarTime] =
      SAMPLE.exec(line) ?? fail('not a sample');
    if (timestamp !== undefined) fail('a timestamp, which no metric of the runner has');
    const family: Family = current ?? fail('a sample without a family');
    const suffix = (SUFFIXES[family.type] ?? fail('unknown type')).find((each) => name === family.name + each);
    if (suffix === undefined) fail(`not a name of the ${family.type} ${family.name}`);
    const labels = labelsOf(labelText ?? '{}', fail);
    const key = JSON.stringify([name, Object.entries(labels).toSorted()]);
    if (seen.has(key)) fail('a duplicate');
    seen.add(key);
    const read = numberOf(value);
    if (family.type === 'counter' && !(read >= 0 && Number.isFinite(read)))
      fail('a counter is finite and not negative');
    if ((suffix === '_bucket') !== 'le' in labels) fail('"le" belongs to buckets');
    const exemplar =
      exemplarLabels === undefined
        ? null
        : {
            labels: labelsOf(exemplarLabels, fail),
            value: Number(exemplarValue),
            timestamp: exemplarTime === undefined ? null : Number(exemplarTime),
          };
    if (exemplar !== null) {
      if (suffix !== '_bucket' && suffix !== '_total') fail('exemplars belong to buckets and counters');
      if (Object.entries(exemplar.labels).flat().join('').length > EXEMPLAR_CHARS) fail('an exemplar is too long');
    }
    family.samples.push({ name, labels, value: read, exemplar });
  }
  for (const family of families.values()) if (family.type === 'histogram') checkHistogram(family);
  return families;
}

function describe(family: Family, kind: string, rest: string, fail: (why: string) => never): void {
  switch (kind) {
    case 'TYPE':
      if (family.type !== 'unknown') fail('a second type');
      if (!(rest in SUFFIXES)) fail('unknown type');
      if (family.name.endsWith('_total')) fail('the suffix belongs to the samples of counters');
      family.type = rest;
      return;
    case 'UNIT':
      if (family.unit !== null) fail('a second unit');
      if (!family.name.endsWith(`_${rest}`)) fail('the name does not end with the unit');
      family.unit = rest;
      return;
    default:
      if (family.help !== null) fail('a second help');
      if (!HELP.test(rest)) fail('not escaped');
      family.help = rest;
  }
}

function labelsOf(text: string, fail: (why: string) => never): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = '', written = ''] of text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
    if (name in labels) fail('a label twice');
    labels[name] = written.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
  }
  return labels;
}

function numberOf(text: string): number {
  return Number(text.replace('Inf', 'Infinity'));
}

/** Buckets of each series ascend, are cumulative and end with +Inf, which is the count. */
function checkHistogram({ name, samples }: Family): void {
  const series = Map.groupBy(samples, ({ labels }) => JSON.stringify({ ...labels, le: undefined }));
  for (const [key, points] of series) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${name}${key}`);
    };
    const buckets = points.filter((point) => point.name === `${name}_bucket`);
    let lastBound = -Infinity;
    let lastCount = 0;
    for (const { labels, value, exemplar } of buckets) {
      const bound = numberOf(labels['le'] ?? '');
      if (/^\d+$/.test(labels['le'] ?? '')) fail('a bound is not written as a float');
      if (!(bound > lastBound)) fail('bounds do not ascend');
      if (value < lastCount) fail('buckets are not cumulative');
      if (exemplar !== null && !(exemplar.value > lastBound && exemplar.value <= bound))
        fail('an exemplar of another bucket');
      lastBound = bound;
      lastCount = value;
    }
    if (lastBound !== Infinity) fail('there is no bucket +Inf');
    const count = points.find((point) => point.name === `${name}_count`);
    if (count?.value !== lastCount) fail('the count is not that of the last bucket');
    if (!points.some((point) => point.name === `${name}_sum`)) fail('there is no sum');
  }
}
