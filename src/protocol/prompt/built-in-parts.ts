/** The built-in text of each part of the system prompt (L4). Lists come from the manifests. */
import { actionSpec } from '../../domain/action-types.ts';
import { internalActionSpec } from '../../domain/internal-actions.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { promptPartSpec } from '../../domain/prompt-parts.ts';
import type { PromptPartId } from '../../domain/prompt-parts.ts';
import { actingParts } from './acting.ts';
import { internalUses, isInternalAllowed } from './allowed.ts';
import { promptExamples } from './examples.ts';
import type { PromptExample } from './examples.ts';
import { memorySection } from './memory-section.ts';
import { parameterLines } from './parameter-lines.ts';
import { shortToolSection } from './short-tool-section.ts';
import { shownTools } from './shown-tools.ts';
import { skillSection } from './skill-section.ts';
import { toolBlock } from './tool-block.ts';
import { approvalNote, oneLine, returnsOf, tablesOf, workflowReturns, workspaceNote } from './returns.ts';

/** The built-in text of a part; empty if the agent's prompt has no such part. */
export function builtInPart(id: PromptPartId, resolved: ResolvedAgent): string {
  const { agent } = resolved;
  // Functions are declared in a separate field of the request; a second way to call them would cost and confuse (P17).
  if (agent.protocol.dialect === 'tool_calls' && !promptPartSpec(id).isNative) return '';
  switch (id) {
    case 'identity':
      return who(agent);
    case 'protocol':
    case 'actions':
    case 'response':
    case 'rules':
      return actingParts(resolved)[id];
    case 'examples':
      return examples(resolved);
    case 'tools':
      return tools(resolved);
    case 'short_tools':
      return shortToolSection(resolved);
    case 'code':
      return code(agent);
    case 'internal_actions':
      return internals(agent);
    case 'agents':
      return agents(resolved);
    case 'relics':
      return relics(resolved);
    case 'workflows':
      return workflows(resolved);
    case 'skills':
      return skillSection(resolved);
    case 'memory':
      return memorySection(agent);
    case 'user':
      return persona('About the user', agent.persona.user);
    case 'further_examples':
      return persona('Further examples', agent.persona.examples.join('\n\n'));
  }
}

function who(agent: AgentDefinition): string {
  const lines = [`You are ${agent.name}. ${agent.summary}`.trim(), agent.persona.agent.trim()];
  return lines.filter((line) => line !== '').join('\n\n');
}

function examples({ agent, relics: known, workflows: pipelines }: ResolvedAgent): string {
  const shown = promptExamples({
    form: agent.protocol.form,
    python: agent.capabilities.includes('python'),
    shell: agent.capabilities.includes('shell'),
    variables: isInternalAllowed(agent, 'set_variable'),
    feeds: isInternalAllowed(agent, 'add_context_feed'),
    agents: agent.imports.agents.length > 0,
    relics: known.size > 0,
    workflows: pipelines.size > 0,
  });
  return ['# Examples (their names are made up; use only those listed further down)', ...shown.map(exampleText)].join(
    '\n\n',
  );
}

function exampleText({ title, user, outputs }: PromptExample): string {
  const turns = outputs.flatMap(({ text, results }) => [
    `You:\n${text}`,
    // Labelled, so that a model does not write results itself.
    ...(results === undefined ? [] : [`Runtime:\n${results}`]),
  ]);
  return [`## Example: ${title}`, `User: ${user}`, ...turns].join('\n');
}

function tools(resolved: ResolvedAgent): string {
  // Tools of a message are in the user's turn, so that the system prompt stays the same (C3).
  const blocks = shownTools(resolved).full.map((tool) => toolBlock(tool, resolved));
  return blocks.length === 0 ? '' : ['# Tools (type="tool")', ...blocks].join('\n\n');
}

function shownIf(line: string): string[] {
  return line === '' ? [] : [line];
}

function code(agent: AgentDefinition): string {
  const lines = agent.capabilities.map(
    (type) => `- type="${type}"${approvalNote({ agent }, type, null)} ${actionSpec(type).prompt ?? ''}`,
  );
  const title = [
    'Code in a sandbox (parameters in braces)',
    workspaceNote(agent),
    'Returns what it prints, parsed if JSON',
  ];
  return section(title.filter((part) => part !== '').join('. '), lines);
}

function internals(agent: AgentDefinition): string {
  const lines = internalUses(agent, false)
    .map((name) => ({ name, ...internalActionSpec(name) }))
    .filter(({ needs }) => needs?.also !== true)
    .map(({ name, prompt }) => `- ${name} ${prompt}`);
  return section('Internal actions (type="internal", parameters in braces)', lines);
}

function agents({ agent, agents: known }: ResolvedAgent): string {
  // Not in the heading, which a manifest may replace.
  const note = approvalNote({ agent }, 'agent', null);
  const lines = agent.imports.agents.map((name) => `- ${summarised(`${name}${note}`, known.get(name)?.summary)}`);
  return section(
    `Agents (type="agent", parameters {message, context?}): they work on their own and return their answer as text`,
    lines,
  );
}

function relics(resolved: ResolvedAgent): string {
  const blocks = [...resolved.relics.values()].map((relic) =>
    [
      `## ${relic.name}`,
      relic.summary,
      ...shownIf(tablesOf(relic)),
      ...Object.values(relic.endpoints).flatMap((endpoint) => [
        `- ${summarised(`${relic.name}.${endpoint.name}${approvalNote(resolved, 'relic', endpoint)}`, endpoint.summary)}`,
        ...parameterLines(endpoint.parameters, '  '),
        ...shownIf(returnsOf(endpoint)).map((line) => `  ${line}`),
      ]),
    ].join('\n'),
  );
  const title = '# Relics (type="relic", name "relic.endpoint"): services that keep state';
  return blocks.length === 0 ? '' : [title, ...blocks].join('\n\n');
}

function workflows(resolved: ResolvedAgent): string {
  const note = approvalNote(resolved, 'workflow', null);
  const blocks = [...resolved.workflows.values()].map((workflow) =>
    [
      `## ${workflow.name}${note}`,
      workflow.summary,
      ...parameterLines(workflow.inputs, ''),
      ...shownIf(workflowReturns(workflow)),
    ].join('\n'),
  );
  return blocks.length === 0
    ? ''
    : ['# Workflows (type="workflow", parameters are their inputs)', ...blocks].join('\n\n');
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`# ${title}`, ...lines].join('\n');
}

function summarised(name: string, summary: string | undefined): string {
  return summary === undefined || summary === '' ? name : `${name}: ${oneLine(summary)}`;
}

function persona(title: string, text: string): string {
  return text.trim() === '' ? '' : `# ${title}\n${text.trim()}`;
}
