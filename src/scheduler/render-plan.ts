/** The plan report as text for a terminal (S13): totals, estimates, waves, Gantt chart, dependency tree. */
import type { ActionMode } from '../domain/action.ts';
import { actionSpec } from '../domain/action-types.ts';
import type { PlanReport, PlannedAction } from './plan.ts';

const MODE_ICONS: Readonly<Record<ActionMode, string>> = { sync: '⏸️ ', async: '🔄', fire_and_forget: '🔥' };

const DEFAULT_WIDTH = 70;
const LEAST_WIDTH = 40;
/** Names in the chart are cut to this length. */
const LABEL_CHARS = 20;
/** Maximum number of lines in a section; a plan may have thousands of edges. */
const SECTION_LINES = 400;

export interface RenderOptions {
  readonly agent?: string;
  readonly maxParallel?: number;
  /** Columns. */
  readonly width?: number;
}

/** @returns lines joined by `\n`, without a trailing line break */
export function renderPlan(report: PlanReport, options: RenderOptions = {}): string {
  const width = Math.max(LEAST_WIDTH, options.width ?? DEFAULT_WIDTH);
  const rule = '-'.repeat(width);
  const byId = new Map(report.actions.map((action) => [action.id, action]));
  const sections = [
    ['📋 Execution Plan', rule, ...totals(report, options)],
    ...counted('Actions by Type', report.byType),
    ...counted('Actions by Mode', report.byMode),
    estimates(report),
  ];
  if (report.actions.length > 0) {
    sections.push(['🌊 Waves', rule, ...waves(report, byId)]);
    sections.push(['📊 Timeline (unlimited slots)', rule, ...gantt(report, width)]);
    sections.push(['🔗 Dependency Graph', rule, ...tree(report)]);
  }
  return sections.map((lines) => lines.join('\n')).join('\n\n');
}

function totals(report: PlanReport, { agent, maxParallel }: RenderOptions): string[] {
  return [
    ...(agent === undefined ? [] : [`Agent: ${agent}`]),
    `Total Actions: ${report.actions.length}`,
    ...(maxParallel === undefined ? [] : [`Max Parallel: ${maxParallel}`]),
  ];
}

function counted(title: string, counts: Readonly<Record<string, number>>): string[][] {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return rows.length === 0 ? [] : [[`${title}:`, ...rows.map(([name, count]) => `  • ${name}: ${count}`)]];
}

function estimates({ estimates: estimated, waves: all, criticalPath }: PlanReport): string[] {
  return [
    'Execution Estimates:',
    `  • Sequential execution: ~${duration(estimated.sequential_ms)}`,
    `  • Wave by wave: ~${duration(estimated.waves_ms)}`,
    `  • Critical path: ~${duration(estimated.critical_path_ms)}${criticalPath.length > 1 ? ` (${cutPath(criticalPath)})` : ''}`,
    `  • Speedup: ${estimated.speedup.toFixed(1)}x`,
    `  • Execution waves: ${all.length}`,
  ];
}

function cutPath(path: readonly string[]): string {
  const shown = path.length > 8 ? [...path.slice(0, 6), '…', ...path.slice(-1)] : path;
  return shown.join(' -> ');
}

function waves(report: PlanReport, byId: ReadonlyMap<string, PlannedAction>): string[] {
  const lines: string[] = [];
  for (const [index, ids] of report.waves.entries()) {
    if (index > 0) lines.push('');
    lines.push(`🌊 Wave ${index + 1}${ids.length > 1 ? ' (can run in parallel)' : ''}:`);
    for (const id of ids) {
      const action = byId.get(id);
      if (action !== undefined) lines.push(`  ${actionLine(action)}`);
    }
    for (const { id, wave, holds } of report.barriers) {
      if (wave === index) lines.push(`  ═══ barrier: after ${id} ═══ blocks ${listed(holds)}`);
    }
  }
  return lines;
}

function actionLine({ id, type, mode, name, estimateMs }: PlannedAction): string {
  const call = name === id || name === type ? '' : ` ${name}`;
  return `${actionSpec(type).icon} ${MODE_ICONS[mode]} ${id}${call === '' ? '' : ` ·${call}`} [${duration(estimateMs)}]`;
}

/** One bar per action between its earliest start and finish; full blocks on the critical path. */
function gantt(report: PlanReport, width: number): string[] {
  const label = Math.min(LABEL_CHARS, Math.max(...report.actions.map(({ id }) => id.length)));
  const chart = width - label - 1;
  const totalMs = Math.max(1, report.estimates.critical_path_ms);
  const critical = new Set(report.criticalPath);
  const rows = report.actions.map((action, at) => ({ action, startMs: report.startsMs[at] ?? 0 }));
  rows.sort((a, b) => a.startMs - b.startMs);
  const lines = rows.map(({ action, startMs }) => {
    const from = Math.min(chart - 1, Math.floor((startMs / totalMs) * chart));
    const to = Math.max(from + 1, Math.round(((startMs + action.estimateMs) / totalMs) * chart));
    const bar = (critical.has(action.id) ? '█' : '▒').repeat(to - from);
    return `${cut(action.id, label).padEnd(label)} ${' '.repeat(from)}${bar}`;
  });
  const end = duration(totalMs);
  const axis = `${' '.repeat(label)} 0s${' '.repeat(Math.max(1, chart - 2 - end.length))}${end}`;
  return [axis, ...bounded(lines), `${' '.repeat(label)} █ critical path  ▒ other`];
}

/** Every action below its dependency; one with several dependencies is drawn in full below the first. */
function tree(report: PlanReport): string[] {
  const children = new Map<string, string[]>();
  const hasParent = new Set<string>();
  for (const { from, to } of report.edges) {
    hasParent.add(to);
    const list = children.get(from);
    if (list === undefined) children.set(from, [to]);
    else list.push(to);
  }
  const drawn = new Set<string>();
  const lines: string[] = [];
  const stack = report.actions
    .filter(({ id }) => !hasParent.has(id))
    .map(({ id }) => ({ id, head: '', tail: '' }))
    .reverse();
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { id, head, tail } = item;
    const below = children.get(id) ?? [];
    const again = drawn.has(id) && below.length > 0;
    drawn.add(id);
    lines.push(`${head}${id}${again ? ' (above)' : ''}`);
    if (again) continue;
    for (let at = below.length - 1; at >= 0; at -= 1) {
      const last = at === below.length - 1;
      stack.push({
        id: below[at] ?? '',
        head: `${tail}${last ? '└─ ' : '├─ '}`,
        tail: `${tail}${last ? '   ' : '│  '}`,
      });
    }
  }
  return bounded(lines);
}

function bounded(lines: readonly string[]): string[] {
  if (lines.length <= SECTION_LINES) return [...lines];
  return [...lines.slice(0, SECTION_LINES), `… and ${lines.length - SECTION_LINES} more`];
}

function listed(ids: readonly string[]): string {
  return ids.length <= 6 ? ids.join(', ') : `${ids.slice(0, 6).join(', ')} and ${ids.length - 6} more`;
}

function cut(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1)}…`;
}

/** `340ms`, `1.5s`, `30s`. */
function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  return `${Math.round(ms / 100) / 10}s`;
}
