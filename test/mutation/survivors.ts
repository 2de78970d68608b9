/** Stryker reporter of `npm run test:mutation`: prints each surviving mutant at once. */
import { readFileSync } from 'node:fs';

interface Result {
  readonly status: string;
  readonly fileName: string;
  readonly replacement?: string;
  /** Starts at 1. */
  readonly location: { readonly start: { readonly line: number } };
}

class Survivors {
  onMutantTested({ status, fileName, replacement = '', location: { start } }: Result): void {
    if (status !== 'Survived' && status !== 'NoCoverage') return;
    const line = readFileSync(fileName, 'utf8').split('\n')[start.line - 1] ?? '';
    const path = fileName.slice(fileName.lastIndexOf('src/'));
    console.log(`  ${path}:${start.line}  ${line.trim()}  →  ${replacement.replaceAll(/\s+/g, ' ')}`);
  }
}

export const strykerPlugins = [{ kind: 'Reporter', name: 'survivors', injectableClass: Survivors }];
