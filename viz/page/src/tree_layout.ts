// SPDX-License-Identifier: Apache-2.0
//
// The way of one block as a tree: a level per hop, leaves one below the other, a node beside the
// middle of its children. The nodes that have the block first are drawn, up to a limit. Where a plan
// combines, it is how the value at one node was made: below each node those whose values went into
// its own, the last ones first.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";
import { wayOf } from "./values";

export const TREE_NODES_MAX = 1024;

export interface TreeNode {
  node: number;
  message: number; // that brought the block, or took the value on; NONE at the root
  parent: number; // index; NONE at the root
  level: number;
  row: number;
  children: number[];
  hidden: number; // nodes below it that are not drawn
}

export interface Tree {
  nodes: TreeNode[];
  levels: number;
  rows: number;
  hidden: number;
  crossings: number;
}

/** Of a message, who is reached by it and from whom. */
interface Edge {
  message: number;
  node: number;
  parent: number;
}

/** Whose value of a block is drawn where a plan combines: that of `asked` if it must have it. */
export function makerOf(side: Side, block: number, asked: number): number {
  const { roles, header } = side;
  if (asked !== NONE && asked < header.nodes && roles.wants(asked, block)) return asked;
  if (roles.wants(header.root, block)) return header.root;
  return firstNode(side, (node) => roles.wants(node, block));
}

function firstNode(side: Side, holds: (node: number) => boolean): number {
  for (let node = 0; node < side.header.nodes; ++node) if (holds(node)) return node;
  return side.header.root;
}

/** Parents come before children. */
function edgesOf(side: Side, block: number, asked: number): { root: number; edges: Edge[] } {
  if (side.combines) {
    const way = wayOf(side, block, makerOf(side, block, asked));
    const edges = way.steps.map(({ from, into, message }) => ({
      message,
      node: from,
      parent: into,
    }));
    // What goes into a value comes before it goes on.
    edges.sort((a, b) => side.roundOf(b.message) - side.roundOf(a.message) || a.node - b.node);
    return { root: way.madeAt, edges };
  }
  const indices = indicesOf(side);
  const edges: Edge[] = [];
  for (let node = 0; node < side.header.nodes; ++node) {
    const message = indices.arrival(node, block);
    if (message !== NONE) edges.push({ message, node, parent: side.fromOf(message) });
  }
  // A block leaves a node in a later round than it came.
  edges.sort((a, b) => side.roundOf(a.message) - side.roundOf(b.message) || a.node - b.node);
  return { root: firstNode(side, (node) => side.roles.has(node, block)), edges };
}

/** `asked`: whose value is to be drawn where a plan combines; NONE: as it comes. */
export function layOutTree(side: Side, block: number, asked: number): Tree {
  const { root, edges } = edgesOf(side, block, asked);
  const nodes: TreeNode[] = [
    {
      node: root,
      message: NONE,
      parent: NONE,
      level: 0,
      row: 0,
      children: [],
      hidden: 0,
    },
  ];
  const indexOf = new Map<number, number>([[root, 0]]);
  const drawnAncestor = new Map<number, number>([[root, 0]]);
  let hidden = 0;
  let crossings = 0;
  for (const { message, node, parent: from } of edges) {
    const ancestor = drawnAncestor.get(from) ?? 0;
    if (side.crosses(message)) ++crossings;
    const parent = indexOf.get(from);
    if (nodes.length >= TREE_NODES_MAX || parent === undefined) {
      ++hidden;
      ++nodes[ancestor]!.hidden;
      drawnAncestor.set(node, ancestor);
      continue;
    }
    indexOf.set(node, nodes.length);
    drawnAncestor.set(node, nodes.length);
    nodes[parent]!.children.push(nodes.length);
    nodes.push({
      node,
      message,
      parent,
      level: nodes[parent]!.level + 1,
      row: 0,
      children: [],
      hidden: 0,
    });
  }
  for (const it of nodes) {
    // those in the node's own rack first, racks together
    const rank = (child: number) => {
      const rack = side.rackOf(nodes[child]!.node);
      return rack === side.rackOf(it.node) ? -1 : rack;
    };
    it.children.sort((a, b) => rank(a) - rank(b) || a - b);
  }
  const rows = placeRows(nodes);
  const levels = 1 + nodes.reduce((most, it) => Math.max(most, it.level), 0);
  return { nodes, levels, rows, hidden, crossings };
}

/** Depth first, without recursion: chains may be long. */
function placeRows(nodes: TreeNode[]): number {
  let rows = 0;
  const stack: [number, number][] = [[0, 0]];
  while (stack.length > 0) {
    const top = stack[stack.length - 1]!;
    const it = nodes[top[0]]!;
    if (top[1] < it.children.length) {
      stack.push([it.children[top[1]++]!, 0]);
      continue;
    }
    stack.pop();
    if (it.children.length === 0) it.row = rows++;
    else {
      const first = nodes[it.children[0]!]!.row;
      it.row = (first + nodes[it.children[it.children.length - 1]!]!.row) / 2;
    }
  }
  return rows;
}
