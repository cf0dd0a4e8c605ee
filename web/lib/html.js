// Preact and htm, bound together: `html` makes elements from a template, without a build step.
//
// This is the only file that imports from `vendor/`. Views are plain functions of their properties;
// `pure` makes one that is drawn again only when a property changed.

import { Component, h, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";

export { Component, render };

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

/**
 * A view that is drawn again only when one of its properties is another value; with a list of
 * names, when one of these is.
 * @template {object} P
 * @param {(props: P) => any} draw
 * @param {string[]} [compared]
 * @returns {new () => Component<P>}
 */
export function pure(draw, compared) {
  return class extends Component {
    /** @param {any} next */
    shouldComponentUpdate(next) {
      const now = /** @type {any} */ (this.props);
      return (compared ?? Object.keys(next)).some((name) => next[name] !== now[name]);
    }

    render() {
      return draw(/** @type {any} */ (this.props));
    }
  };
}
