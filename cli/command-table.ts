/** All commands by group, in the order of `cortex --help`. A command is loaded when it is used, so that others start fast. */
import type { Command } from './command.ts';

export type Loader = () => Promise<{ readonly command: Command }>;

interface CommandGroup {
  readonly title: string;
  readonly commands: Readonly<Record<string, Loader>>;
}

export const GROUPS: readonly CommandGroup[] = [
  {
    title: 'Project',
    commands: {
      init: () => import('./commands/init.ts'),
      dev: () => import('./commands/dev.ts'),
      build: () => import('./commands/build.ts'),
      doctor: () => import('./commands/doctor.ts'),
      validate: () => import('./commands/validate.ts'),
      returns: () => import('./commands/returns.ts'),
      migrate: () => import('./commands/migrate.ts'),
    },
  },
  {
    title: 'Sessions',
    commands: {
      run: () => import('./commands/run.ts'),
      chat: () => import('./commands/chat.ts'),
      tail: () => import('./commands/tail.ts'),
      approve: () => import('./commands/approve.ts'),
      sessions: () => import('./commands/sessions.ts'),
      memory: () => import('./commands/memory.ts'),
      replay: () => import('./commands/replay.ts'),
      eval: () => import('./commands/eval.ts'),
      export: () => import('./commands/export.ts'),
    },
  },
  {
    title: 'Prompt and protocol',
    commands: {
      plan: () => import('./commands/plan.ts'),
      prompt: () => import('./commands/prompt.ts'),
      grammar: () => import('./commands/grammar.ts'),
      fluency: () => import('./commands/fluency.ts'),
      'scripted-llm': () => import('./commands/scripted-llm.ts'),
      demo: () => import('./commands/demo.ts'),
    },
  },
  {
    title: 'Deployment',
    commands: {
      deploy: () => import('./commands/deploy.ts'),
      'deploy-check': () => import('./commands/deploy-check.ts'),
      stage: () => import('./commands/stage.ts'),
    },
  },
];

export const COMMANDS: ReadonlyMap<string, Loader> = new Map(
  GROUPS.flatMap(({ commands }): [string, Loader][] => Object.entries(commands)),
);
