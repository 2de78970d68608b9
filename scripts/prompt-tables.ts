/** The generated parts of docs/prompt.md: the parts of the prompt, their texts, their tokens, and what is checked about them. */
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { readManifestFiles } from '../cli/project/manifest-files.ts';
import { loadManifests } from '../src/catalog/load.ts';
import type { AgentDefinition } from '../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../src/domain/manifests/resolved.ts';
import { PROMPT_PARTS, promptPartSpec } from '../src/domain/prompt-parts.ts';
import type { PromptPartId } from '../src/domain/prompt-parts.ts';
import {
  ANSWER_AGAIN,
  BEGINS,
  GO_ON,
  LAST_CHANCE,
  NAMES_BEGIN,
  NOTHING_RAN,
  RECEIVED,
  cutNotice,
  missingNotice,
} from '../src/protocol/prompt/notices.ts';
import { buildSystemPrompt, promptParts } from '../src/protocol/prompt/prompt.ts';
import { CLAIMS, PROMPT_FORMS, wordsOf } from '../test/protocol/prompt/claims/claims.ts';
import type { PromptForm } from '../test/protocol/prompt/claims/claims.ts';

const FORM_TITLES: Readonly<Record<PromptForm, string>> = {
  full: 'full form',
  compact: 'compact form',
  tool_calls: 'tool calls',
};
const CHANGES = { fixed: 'no', replace: 'replace', replace_or_omit: 'replace or leave out' } as const;

const MANIFESTS = new URL('../manifests', import.meta.url).pathname;
const { catalog } = loadManifests(readManifestFiles(MANIFESTS));

function shipped(name: string, change: (agent: AgentDefinition) => AgentDefinition = (agent) => agent): ResolvedAgent {
  const found = catalog.agent(name);
  if (found === null) throw new Error(`there is no agent ${name}`);
  return { ...found, agent: change(found.agent) };
}

function inForm(resolved: ResolvedAgent, form: PromptForm): ResolvedAgent {
  const { agent } = resolved;
  const protocol = form === 'tool_calls' ? { dialect: form } : { dialect: 'protocol' as const, form };
  return { ...resolved, agent: { ...agent, protocol: { ...agent.protocol, ...protocol } } };
}

const tokensOf = (text: string): number => encode(text).length;

function partText(resolved: ResolvedAgent, form: PromptForm, id: PromptPartId): string {
  return promptParts(inForm(resolved, form)).find((part) => part.id === id)?.text ?? '';
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n').replaceAll('|  |', '| |');
}

const code = (text: string): string => `\`${text}\``;

function partTable(): string {
  const rows = PROMPT_PARTS.map((id) => {
    const { heading, purpose, change, placeholders, needs, isNative } = promptPartSpec(id);
    const names = change === 'fixed' ? [] : ['default', ...placeholders];
    const shown = names.map(
      (name) => `${code(`{{${name}}}`)}${(needs as readonly string[]).includes(name) ? '*' : ''}`,
    );
    return [
      code(id),
      heading === null ? '' : code(heading),
      purpose,
      CHANGES[change],
      shown.join(', '),
      isNative ? 'yes' : 'no',
    ];
  });
  return table(['part', 'begins with', 'what it is for', 'a manifest may', 'placeholders', 'with tool calls'], rows);
}

function figures(resolved: ResolvedAgent, id: PromptPartId): string[] {
  return PROMPT_FORMS.map((form) => partText(resolved, form, id)).map((text) =>
    text === '' ? '' : String(tokensOf(text)),
  );
}

function tokenTable(): string {
  const resolved = shipped('assistant');
  const rows = promptParts(inForm(resolved, 'full')).map(({ id }) => [code(id), ...figures(resolved, id)]);
  const whole = PROMPT_FORMS.map((form) => String(tokensOf(buildSystemPrompt(inForm(resolved, form)))));
  return table(['part', ...PROMPT_FORMS.map((form) => FORM_TITLES[form])], [...rows, ['whole prompt', ...whole]]);
}

/** Parts that the assistant does not have, in an agent that has them. */
const ELSEWHERE: readonly (readonly [id: PromptPartId, agent: string, resolved: ResolvedAgent])[] = [
  [
    'short_tools',
    '`assistant` with `protocol: {tool_tokens: 100}`',
    shipped('assistant', (agent) => ({ ...agent, protocol: { ...agent.protocol, toolTokens: 100 } })),
  ],
  ['agents', '`research_orchestrator`, one agent', shipped('research_orchestrator')],
  ['relics', '`archivist`, two relics', shipped('archivist')],
  ['workflows', '`analyst`, one workflow', shipped('analyst')],
  ['skills', '`analyst`, two skills', shipped('analyst')],
  [
    'memory',
    '`assistant` with `memory: {facts: true}`',
    shipped('assistant', (agent) => ({ ...agent, memory: { ...agent.memory, facts: { max: 50, maxTokens: 1_000 } } })),
  ],
];

function furtherTokenTable(): string {
  const rows = ELSEWHERE.map(([id, agent, resolved]) => [code(id), agent, ...figures(resolved, id)]);
  return table(['part', 'measured with', ...PROMPT_FORMS.map((form) => FORM_TITLES[form])], rows);
}

/** The texts of the parts with fixed words, in each form that differs from the one before it. */
function texts(): string {
  const resolved = shipped('assistant');
  return (['protocol', 'actions', 'response', 'rules', 'examples'] as const)
    .map((id) => {
      const shown: string[] = [];
      const blocks = PROMPT_FORMS.flatMap((form) => {
        const text = partText(resolved, form, id);
        if (text === '' || shown.includes(text)) return [];
        shown.push(text);
        return [
          `In ${FORM_TITLES[form] === 'tool calls' ? 'prompts for tool calls' : FORM_TITLES[form]}:\n\n~~~~text\n${text}\n~~~~`,
        ];
      });
      return [`#### ${code(id)}`, ...blocks].join('\n\n');
    })
    .join('\n\n');
}

function claimTable(): string {
  const rows = CLAIMS.map((claim) => {
    const words = [...new Set(PROMPT_FORMS.flatMap((form) => wordsOf(claim, form) ?? []))];
    const shown = words.map((text) => code(text.replaceAll(/\s*\n\s*/g, ' '))).join('<br>');
    return [code(claim.part), shown, claim.check ?? 'advice: needs a model'];
  });
  return table(['part', 'the prompt says', 'checked on the engine'], rows);
}

const NOTICES: readonly (readonly [when: string, text: string])[] = [
  ['after results, before the next generation', GO_ON],
  ['the output had neither an action nor a response', NOTHING_RAN],
  ['a final response did not end the run', ANSWER_AGAIN],
  ['before the last generation of the run', LAST_CHANCE],
  [
    'references in a response have no value',
    missingNotice([{ reference: '$list.count', name: 'list', shape: '{total: number}' }]),
  ],
  ['the output was cut', cutNotice('length')],
  ['a message arrived during the run', RECEIVED],
  ['a seeded history begins with the assistant', BEGINS],
  ['after a seeded history with results', NAMES_BEGIN],
];

function noticeTable(): string {
  const rows = NOTICES.map(([when, text]) => [when, code(text), String(tokensOf(text))]);
  return table(['when', 'text', 'tokens'], rows);
}

/** The manifests of the page, by name. */
export function pageAgents(page: string): ReadonlyMap<string, ResolvedAgent> {
  const blocks = [...page.matchAll(/```yaml\n(kind: Agent[^]*?)```/g)].map(([, text = ''], index) => ({
    path: `manifests/page-${index}.yaml`,
    text,
  }));
  const loaded = loadManifests([...readManifestFiles(MANIFESTS), ...blocks]).catalog;
  const names = blocks.flatMap(({ text }) => /^name: (\S+)$/m.exec(text)?.[1] ?? []);
  return new Map(
    names.flatMap((name) => {
      const agent = loaded.agent(name);
      return agent === null ? [] : [[name, agent] as const];
    }),
  );
}

/** What the replacements of the page cost, and the built-in parts in their place. */
function replacementTable(page: string): string {
  const rows = [...pageAgents(page)].flatMap(([name, resolved]) => {
    const { prompt: _changes, ...agent } = resolved.agent;
    const plain = { ...resolved, agent };
    const before = new Map(promptParts(plain).map(({ id, text }) => [id, tokensOf(text)]));
    const changed = promptParts(resolved).filter(({ state }) => state !== 'built_in');
    return [
      ...changed.map(({ id, text }) => [code(name), code(id), String(before.get(id)), String(tokensOf(text))]),
      [
        code(name),
        'whole prompt',
        String(tokensOf(buildSystemPrompt(plain))),
        String(tokensOf(buildSystemPrompt(resolved))),
      ],
    ];
  });
  return table(['agent', 'part', 'built in', 'replaced'], rows);
}

const SECTIONS: Readonly<Record<string, (page: string) => string>> = {
  parts: partTable,
  tokens: tokenTable,
  'further-tokens': furtherTokenTable,
  texts,
  claims: claimTable,
  notices: noticeTable,
  replacements: replacementTable,
};

/** The page with its generated parts as they should be. */
export function withPromptTables(page: string): string {
  return page.replaceAll(
    /(<!-- prompt: ([\w-]+) -->\n)[^]*?(<!-- end -->)/g,
    (_whole, before: string, name: string, after: string) => `${before}\n${SECTIONS[name]?.(page) ?? ''}\n\n${after}`,
  );
}
