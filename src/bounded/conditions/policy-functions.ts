/** The functions of policies' conditions. They charge the meter of the evaluation that calls them. */
import type { Environment } from '@marcbachmann/cel-js';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded, WorkMeter } from '../../domain/work.ts';
import { compilePattern } from '../pattern.ts';
import type { Pattern } from '../pattern.ts';
import type { ConditionMeter } from './condition-work.ts';

/** The name of the linear `matches` in the environment: the library's own function cannot be replaced. */
export const MATCHES = 'matchesLinear';

/** The meter of the running evaluation. Evaluations do not wait, so there is one at a time. */
let running: WorkMeter | null = null;

export function withMeter<T>(meter: WorkMeter, work: () => T): T {
  const outer = running;
  running = meter;
  try {
    return work();
  } finally {
    running = outer;
  }
}

/** Charges the running evaluation: expressions are read once, and evaluated many times. */
export const RUNNING: ConditionMeter = {
  charge: (steps) => running?.charge(steps),
  chargeChars: (chars) => running?.chargeChars(chars),
};

export function registerPolicyFunctions(environment: Environment): Environment {
  return environment
    .registerFunction('text(dyn): string', textOf)
    .registerFunction('host(string): string', hostOf)
    .registerFunction(`string.${MATCHES}(string): bool`, matches);
}

/** Compiled patterns of manifests and settings; the oldest are dropped. */
const compiled = new Map<string, Pattern>();

/** Follows the pattern in a message; null if it can be matched. */
export function patternIssue(source: string): string | null {
  try {
    const found = compilePattern(source, new WorkMeter(limits.policySteps));
    return found.ok ? null : found.reason;
  } catch (fault) {
    if (fault instanceof WorkExceeded) return 'is too large';
    throw fault;
  }
}

function matches(text: string, source: string): boolean {
  const meter = running ?? new WorkMeter(limits.policySteps);
  let pattern = compiled.get(source);
  if (pattern === undefined) {
    const made = compilePattern(source, meter);
    if (!made.ok) throw new Error(`the pattern ${made.reason}`);
    ({ pattern } = made);
    for (const [oldest] of compiled) {
      if (compiled.size < limits.policyPatterns) break;
      compiled.delete(oldest);
    }
    compiled.set(source, pattern);
  }
  return pattern.test(text, meter);
}

/** The host of an HTTP(S) URL as browsers read it, in lower case, without the port and a dot at its end. */
function hostOf(text: string): string {
  RUNNING.chargeChars(text.length);
  if (!URL.canParse(text)) throw new Error('host() needs an absolute URL');
  const { protocol, hostname } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error('host() needs an HTTP(S) URL');
  return hostname.replace(/\.$/, '');
}

/** All strings and numbers in a value and the names of its members, one per line: what a pattern can search. */
function textOf(value: unknown): string {
  const lines: string[] = [];
  collect(value, lines);
  return lines.join('\n');
}

function collect(value: unknown, lines: string[]): void {
  RUNNING.charge();
  if (typeof value === 'string') {
    RUNNING.chargeChars(value.length);
    lines.push(value);
  } else if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') {
    lines.push(String(value));
  } else if (Array.isArray(value)) for (const item of value) collect(item, lines);
  else if (value instanceof Map) {
    for (const [name, item] of value) {
      collect(name, lines);
      collect(item, lines);
    }
  }
}
