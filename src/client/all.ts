/** The package's entry `cortex-edge/client`. A bundler leaves out the functions for files if a page does not use them. */
export * from './index.ts';
export * from './files.ts';
