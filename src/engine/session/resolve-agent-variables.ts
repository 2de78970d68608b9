/** Resolves context variables in an agent's persona, feeds and tools, once per session (M5). */
import { inRequest } from '../../catalog/check/secrets.ts';
import { isOn, resolveVariables } from '../../catalog/build/variables.ts';
import { contextVariables } from '../../domain/context-variables.ts';
import { derived } from '../../domain/derived.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { PromptChanges } from '../../domain/prompt-parts.ts';
import { escapeBraces } from '../../domain/request-template.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { SessionRecord } from '../../domain/session.ts';

/**
 * Replaces context variables and the agent's own variables, whose values may contain context variables. Times are those
 * of the session's creation, so the prompt stays the same from call to call (L4).
 */
export function resolveAgentVariables(resolved: ResolvedAgent, record: SessionRecord): ResolvedAgent {
  const { agent } = resolved;
  if (!mayNameVariables(resolved)) return resolved;
  const own = {
    DATE: new Date(record.created_at).toISOString().slice(0, 10),
    SESSION_ID: record.session_id,
    AGENT_NAME: agent.name,
    ...(record.user_id === null ? {} : { USER_ID: record.user_id }),
  };
  const context = contextVariables(agent, record, record.created_at);
  /** @param given the context variables, as they are written in this place */
  const declaredWith = (given: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(agent.variables).map(([name, value]) => [name, resolveVariables(value, given, given)]),
    );
  const variables: Readonly<Record<string, string>> = { ...context, ...declaredWith(context), ...own };
  const user = inAddress(record.user_id);
  const escaped = user === null ? {} : { USER_ID: user };
  const contextInUrl = { ...context, ...(user === null ? {} : { USER: user, USER_ID: user }) };
  const urlVariables = { ...contextInUrl, ...declaredWith(contextInUrl), ...own, ...escaped };
  const resolve = (text: string): string => resolveVariables(text, variables);
  const persona = {
    agent: resolve(agent.persona.agent),
    user: resolve(agent.persona.user),
    examples: agent.persona.examples.map(resolve),
  };
  const prompt = agent.prompt === undefined ? {} : { prompt: inPromptChanges(agent.prompt, resolve) };
  const { summary } = agent.memory;
  const memory =
    summary?.template == null
      ? agent.memory
      : { ...agent.memory, summary: { ...summary, template: resolve(summary.template) } };
  const feeds = agent.feeds.map(({ enabledBy, ...feed }) => ({
    ...feed,
    ...(enabledBy === undefined ? {} : { enabled: isEnabled(enabledBy, variables) }),
    source: {
      ...feed.source,
      params: inJson(feed.source.params, (text) => resolveVariables(text, variables, context)) as JsonObject,
    },
  }));
  const tools = new Map(
    [...resolved.tools].map(([name, tool]) => {
      const { implementation } = tool;
      const sealed = implementation.type === 'http' && implementation.sealed === true;
      const here = withoutPlaceholders(sealed ? own : variables);
      const inUrl = withoutPlaceholders(sealed ? { ...own, ...escaped } : urlVariables);
      return [
        name,
        inRequest(
          tool,
          (text) => resolveVariables(text, here),
          (url) => resolveVariables(url, inUrl),
        ),
      ];
    }),
  );
  return { ...resolved, tools, agent: { ...agent, persona, ...prompt, feeds, memory } };
}

/** Sessions share an agent that names no variable, with all that is derived from it. */
const mayNameVariables = derived(({ agent, tools }: ResolvedAgent): boolean => {
  const { persona, prompt, memory, feeds } = agent;
  const requests = [...tools.values()].flatMap(({ implementation }) =>
    implementation.type === 'http' ? [implementation.url, implementation.headers] : [],
  );
  const isSwitched = feeds.some(({ enabledBy }) => enabledBy !== undefined);
  const texts = [persona, prompt, memory.summary?.template, feeds.map(({ source }) => source.params), requests];
  return isSwitched || JSON.stringify(texts).includes('$');
});

/** Resolves the author's text between the placeholders of replaced parts; a value cannot become a placeholder (L4). */
function inPromptChanges(changes: PromptChanges, resolve: (text: string) => string): PromptChanges {
  return Object.fromEntries(
    Object.entries(changes).map(([id, pieces]) => [
      id,
      pieces === false ? false : pieces.map((piece) => (typeof piece === 'string' ? resolve(piece) : piece)),
    ]),
  );
}

/** A variable that is not set leaves a feed on; a value that means neither yes nor no switches it off. */
function isEnabled(written: string, variables: Readonly<Record<string, string>>): boolean {
  const value = resolveVariables(written, variables);
  return value === written || isOn(value) === true;
}

/** A value is data in a request: its braces are not placeholders. */
function withoutPlaceholders(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, escapeBraces(value)]));
}

/** The user's id is chosen by a caller: in a URL it is escaped text, never a host, a path or a parent directory. */
function inAddress(userId: string | null): string | null {
  if (userId === null || /^\.+$/.test(userId)) return userId === null ? null : '';
  return encodeURIComponent(userId.toWellFormed());
}

/** Resolves every string inside a value; member names are unchanged. */
function inJson(value: Json, resolve: (text: string) => string): Json {
  if (typeof value === 'string') return resolve(value);
  if (Array.isArray(value)) return value.map((item) => inJson(item, resolve));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inJson(member, resolve)]));
}
