import { IS_OWN_PROJECT } from './folders.ts';

/** Where the shipped manifests appear among those of another project. */
export const SHIPPED_FOLDER = 'cortex-edge/manifests';

/** Whether a file belongs to Cortex Edge: the project's manifests may replace what it defines (M4). */
export function isShipped(file: string): boolean {
  return IS_OWN_PROJECT ? OWN.has(file) : file.startsWith(`${SHIPPED_FOLDER}/`);
}

/** The files of this repository's project that are shipped; its folder may have others during development. */
const OWN: ReadonlySet<string> = new Set(
  [
    'agents/analyst.yaml',
    'agents/archivist.yaml',
    'agents/assistant.yaml',
    'agents/builder.yaml',
    'agents/careful_assistant.yaml',
    'agents/eval_judge.yaml',
    'agents/notes_keeper.yaml',
    'agents/research_orchestrator.yaml',
    'agents/researcher.yaml',
    'agents/system_monitor.yaml',
    'relics/event_log.yaml',
    'relics/key_value.yaml',
    'relics/notes.yaml',
    'relics/sql_store.yaml',
    'relics/tables.yaml',
    'skills/data-analysis/SKILL.md',
    'skills/report-writing/SKILL.md',
    'skills/web-research/SKILL.md',
    'tools/calculator.yaml',
    'tools/echo.yaml',
    'tools/json_query.yaml',
    'tools/system_status.yaml',
    'tools/text_stats.yaml',
    'tools/web_extract.yaml',
    'tools/web_fetch.yaml',
    'workflows/data_pipeline.yaml',
  ].map((path) => `manifests/${path}`),
);
