/**
 * Builds the definitions of a load, one document at a time (M1-M3, M8): schema, files, imports. A definition whose
 * document, files and imports are unchanged is reused.
 */
import type { z } from 'zod';
import type { IntervalLimits } from '../domain/intervals.ts';
import { limits } from '../domain/limits.ts';
import { WorkMeter } from '../domain/work.ts';
import { toAgent } from './build/build-agent.ts';
import type { BuildContext } from './build/build-base.ts';
import { toImports, withSkills } from './build/build-imports.ts';
import type { ImportTarget } from './build/build-imports.ts';
import { toMonument } from './build/build-monument.ts';
import { toSkill } from './build/build-skill.ts';
import { toRelic } from './build/build-relic.ts';
import { toTool } from './build/build-tool.ts';
import { toWorkflow } from './build/build-workflow.ts';
import type { AnyDefinition } from './catalog.ts';
import type { DescribedTool } from '../domain/code-tool.ts';
import { isJsonObject } from '../domain/json.ts';
import { check } from './check/issues.ts';
import type { Issue } from './check/issues.ts';
import { TooManyProblems } from './check/problem-log.ts';
import type { ProblemLog } from './check/problem-log.ts';
import type { FieldPath } from './check/problem.ts';
import type { Found, ImportBindings } from './read/import-bindings.ts';
import type { ImportIndex } from './read/imports.ts';
import { relativeTo } from './read/paths.ts';
import type { PathIndex } from './read/paths.ts';
import type { BuiltDefinition, ReadDocument } from './read/read-file.ts';
import { agentSchema, monumentSchema, toolSchema } from './schema/schema.ts';
import { skillSchema } from './schema/schema-skill.ts';
import { relicSchema } from './schema/schema-relic.ts';
import { workflowSchema } from './schema/schema-workflow.ts';

/** What a load provides. */
interface DefinitionPorts {
  /** The text of a file, or null. */
  readonly textOf: (path: string) => string | null;
  readonly paths: PathIndex;
  readonly index: ImportIndex<Found>;
  readonly bindings: ImportBindings;
  readonly log: ProblemLog;
  readonly codeTools: ReadonlyMap<string, DescribedTool>;
  /** The files of code tools that have errors, by name. */
  readonly faultyTools: ReadonlyMap<string, string>;
  /** Minimum intervals for a document; null = none. */
  readonly intervalsOf: (found: Found) => IntervalLimits | null;
}

export class Definitions {
  readonly #ports: DefinitionPorts;

  constructor(ports: DefinitionPorts) {
    this.#ports = ports;
  }

  /** The definition of a document, or null if it has errors. */
  define(found: Found): AnyDefinition | null {
    for (const note of found.notes) this.#ports.log.warn(found, note);
    if (found.foreign !== null) {
      this.#ports.log.report(found, found.foreign);
      return null;
    }
    const known = found.read.built;
    if (known !== null && this.#isUnchanged(found, known)) {
      for (const warning of known.warnings) this.#ports.log.warn(found, warning);
      const bound = known.targets.every(
        ({ written, kind, field, name }) =>
          name === null || this.#ports.bindings.resolve(written, kind, found, field) === name,
      );
      return bound ? known.definition : null;
    }
    found.read.built = null;
    switch (found.kind) {
      case 'tool':
        return this.#tool(found);
      case 'relic':
        return this.#build(found, relicSchema, toRelic);
      case 'agent':
        return this.#build(found, agentSchema, (input, context) =>
          toAgent(input, withSkills(input.import, context.target), context),
        );
      case 'workflow':
        return this.#build(found, workflowSchema, (input, { target, ...context }) =>
          toWorkflow(input, { ...context, imports: toImports(input.import, target), target }),
        );
      case 'skill':
        return this.#build(found, skillSchema, toSkill);
      case 'monument':
        return this.#build(found, monumentSchema, toMonument);
    }
  }

  /** A code tool whose code has errors is omitted: the errors of its file are the only ones. */
  #tool(found: Found): AnyDefinition | null {
    const isCode = isOfCode(found);
    const file = isCode ? this.#ports.faultyTools.get(found.name) : undefined;
    if (file === undefined) {
      return this.#build(isCode ? withCodeDefaults(found, this.#ports.codeTools) : found, toolSchema, toTool);
    }
    const message = `${file} has errors, so the tool is omitted`;
    this.#ports.log.warn(found, { path: ['implementation', 'type'], part: 'value', message });
    return null;
  }

  /** Whether everything that a definition depends on is unchanged. */
  #isUnchanged(found: Found, { files, folders, targets }: BuiltDefinition): boolean {
    return (
      files.every(({ path, text }) => this.#ports.textOf(this.#ports.paths.resolve(found.file, path)) === text) &&
      folders.every(({ path, names }) => {
        const now = this.#ports.paths.below(relativeTo(found.file, path), names.length + 1);
        return now.length === names.length && now.every((name, index) => name === names[index]);
      }) &&
      targets.every(({ written, kind, name }) => {
        const result = this.#ports.index.resolve(written, kind, found);
        return ('name' in result ? result.name : null) === name;
      })
    );
  }

  /** Validates and builds one definition; null if it has errors. */
  #build<Input, T extends AnyDefinition>(
    found: Found,
    schema: z.ZodType<Input>,
    build: (input: Input, context: BuildContext & { readonly target: ImportTarget }) => T,
  ): T | null {
    const { file } = found;
    const checked = check(schema, found.value);
    for (const error of checked.errors) this.#ports.log.report(found, error);
    if (checked.value === null) return null;

    const before = this.#ports.log.count;
    const addIssue = (path: FieldPath, message: string): void =>
      this.#ports.log.report(found, { path, part: 'value', message });
    const files: BuiltDefinition['files'][number][] = [];
    const folders: BuiltDefinition['folders'][number][] = [];
    const warnings: Issue[] = [];
    const targets: BuiltDefinition['targets'][number][] = [];
    const warn = (path: FieldPath, message: string): void => {
      const warning = { path, part: 'value', message } as const;
      warnings.push(warning);
      this.#ports.log.warn(found, warning);
    };
    let left = limits.definitionChars;
    const definition = build(checked.value, {
      addIssue,
      warn,
      free: checked.free,
      intervals: this.#ports.intervalsOf(found),
      work: new WorkMeter(limits.manifestSchemaSteps),
      codeTools: this.#ports.codeTools,
      readFile: (path, field) => {
        const text = this.#ports.textOf(this.#ports.paths.resolve(file, path));
        files.push({ path, text });
        if (text === null) {
          addIssue(field, `names the file "${path}", but there is no ${relativeTo(file, path)}`);
          return null;
        }
        left -= text.length;
        if (left < 0) {
          const message = `the files of the manifest have more than ${limits.definitionChars} characters in total`;
          this.#ports.log.report(found, { path: field, part: 'value', message });
          throw new TooManyProblems();
        }
        return text;
      },
      hasFile: (path) => {
        const text = this.#ports.textOf(this.#ports.paths.resolve(file, path));
        files.push({ path, text });
        return text !== null;
      },
      listFiles: (folder) => {
        const names = this.#ports.paths.below(relativeTo(file, folder), limits.contextFiles + 1);
        folders.push({ path: folder, names });
        return names;
      },
      target: (written, kind, field, isOptional = false) => {
        const result = isOptional ? this.#ports.index.resolve(written, kind, found) : null;
        if (result !== null && 'message' in result) {
          targets.push({ written, kind, field, name: null });
          warn(field, `${result.message()}; the step fails when it runs`);
          return null;
        }
        const name = this.#ports.bindings.resolve(written, kind, found, field);
        targets.push({ written, kind, field, name });
        return name;
      },
    });
    if (this.#ports.log.count > before) return null;
    found.read.built = { definition, warnings, files, folders, targets };
    return definition;
  }
}

/** Whether the document describes a code tool. */
export function isOfCode({ kind, value }: Pick<ReadDocument, 'kind' | 'value'>): boolean {
  const implementation = kind === 'tool' && isJsonObject(value) ? value['implementation'] : null;
  return isJsonObject(implementation) && implementation['type'] === 'code';
}

/** The manifest of a code tool need not repeat what the code says. Without code, that is the only issue. */
function withCodeDefaults(found: Found, codeTools: ReadonlyMap<string, DescribedTool>): Found {
  const { value } = found;
  const defaults = { version: '1.0', summary: codeTools.get(found.name)?.description ?? found.name };
  return { ...found, value: { ...defaults, ...value } };
}
