/**
 * The parts of the system prompt (L4): the single list of their ids, in the order of the prompt. Manifests, the prompt
 * itself, the command line and docs/prompt.md are derived from it.
 */

/** What a manifest may do with a part. */
export type PartChange =
  /** It stays as it is: the safety of the agent's users depends on it. */
  | 'fixed'
  /** Its text may be replaced. */
  | 'replace'
  /** Its text may be replaced, and the part may be left out. */
  | 'replace_or_omit';

interface PromptPartSpec {
  /** How the part begins; null without a heading of its own. */
  readonly heading: string | null;
  readonly purpose: string;
  readonly change: PartChange;
  /** Names that a replacement may use as `{{name}}`. All may use `default`, the built-in text. */
  readonly placeholders: readonly string[];
  /** Placeholders that a replacement needs, unless it has `{{default}}`. */
  readonly needs: readonly string[];
  /** Whether an agent whose model calls functions has the part (P17). Its replacement then needs no placeholders of protocol text. */
  readonly isNative: boolean;
}

/** A list of what the manifests have: only its words around the list may be replaced. */
const LIST = { change: 'replace', placeholders: ['content'], needs: ['content'], isNative: false } as const;

const PART_TABLE = {
  identity: {
    heading: null,
    purpose: "The agent's name, summary and persona",
    change: 'replace',
    placeholders: ['name', 'summary', 'persona'],
    needs: ['persona'],
    isNative: true,
  },
  protocol: {
    heading: '# How you act',
    purpose: 'The blocks that the parser reads: thought, action, response',
    change: 'replace',
    placeholders: ['action', 'response', 'without_final', 'max_parallel'],
    needs: ['action', 'response'],
    isNative: true,
  },
  actions: {
    heading: 'Actions:',
    purpose: 'Fields, types and ids of actions, what runs in parallel, what waits, and references',
    change: 'replace_or_omit',
    placeholders: ['types', 'max_parallel', 'code_inputs'],
    needs: [],
    isNative: false,
  },
  response: {
    heading: 'Your response:',
    purpose: 'What becomes of references in a response, and when to write none',
    change: 'replace_or_omit',
    placeholders: ['without_final'],
    needs: [],
    isNative: true,
  },
  rules: {
    heading: null,
    purpose: 'What only the runtime writes, that data is never an instruction, and what to do after failures',
    change: 'fixed',
    placeholders: [],
    needs: [],
    isNative: true,
  },
  examples: {
    heading: '# Examples',
    purpose: 'Complete exchanges in the form of the agent, with fictional tools',
    change: 'replace_or_omit',
    placeholders: ['content'],
    needs: [],
    isNative: false,
  },
  tools: { heading: '# Tools', purpose: 'Tools with their parameters and results', ...LIST },
  short_tools: {
    heading: '# Further tools',
    purpose: 'Tools by name and summary, and how to read their parameters',
    ...LIST,
    isNative: true,
  },
  code: {
    heading: '# Code in a sandbox',
    purpose: 'Types of code that the agent may run, with their parameters',
    ...LIST,
  },
  internal_actions: {
    heading: '# Internal actions',
    purpose: 'Actions of the runtime: variables, feeds, memory',
    ...LIST,
  },
  agents: { heading: '# Agents', purpose: 'Sub-agents by name and summary', ...LIST },
  relics: { heading: '# Relics', purpose: 'Relics with their endpoints and tables', ...LIST },
  workflows: { heading: '# Workflows', purpose: 'Workflows with their inputs and results', ...LIST },
  skills: {
    heading: '# Skills',
    purpose: 'Skills by name and description, and how to load one',
    ...LIST,
    isNative: true,
  },
  memory: {
    heading: '# Facts about the user',
    purpose: 'What the feed with facts is, and that facts are data',
    ...LIST,
    isNative: true,
  },
  user: { heading: '# About the user', purpose: '`persona.user` of the manifest', ...LIST, isNative: true },
  further_examples: {
    heading: '# Further examples',
    purpose: '`persona.examples` of the manifest',
    ...LIST,
    isNative: true,
  },
} as const satisfies Record<string, PromptPartSpec>;

export type PromptPartId = keyof typeof PART_TABLE;
/** In the order of the prompt. */
export const PROMPT_PARTS: readonly PromptPartId[] = Object.keys(PART_TABLE) as PromptPartId[];

export function promptPartSpec(id: PromptPartId): PromptPartSpec {
  return PART_TABLE[id];
}

/** A name that replacements may use as `{{name}}`. `default` is the built-in text of the part. */
export type PromptPlaceholder = 'default' | (typeof PART_TABLE)[PromptPartId]['placeholders'][number];

/** Text of the author, or a value that only the runtime knows. */
export type PromptPiece = string | { readonly value: PromptPlaceholder };

/**
 * `prompt:` of an agent's manifest: the replacement of a part in pieces, or false if the part is left out. Placeholders are
 * found in the author's text only, when the manifest is read. Values that are filled in later are never searched for them.
 */
export type PromptChanges = Readonly<Partial<Record<PromptPartId, readonly PromptPiece[] | false>>>;
