/** What an element becomes in the built page: calls of `h` are smaller than those of the automatic runtime. */
export { Fragment, h } from 'preact';
