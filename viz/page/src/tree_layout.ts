// SPDX-License-Identifier: Apache-2.0
//
// The way of one block as a tree: a level per hop, leaves one below the other, a node beside the
// middle of its children. The nodes that have the block first are drawn, up to a limit.
import { indicesOf } from "./indices";
import { NONE, Side } from "./model";

export const TREE_NODES_MAX = 1024;

export interface TreeNode {
  node: number;
  message: number; // that brought the block; NONE at the root
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

export function layOutTree(side: Side, block: number): Tree {
  const indices = indicesOf(side);
  const { root } = side.header;
  const messages: number[] = [];
  for (let node = 0; node < side.header.nodes; ++node) {
    const message = indices.arrival(node, block);
    if (message !== NONE) messages.push(message);
  }
  // A block leaves a node in a later round than it came, so parents come before children.
  messages.sort((a, b) => side.roundOf(a) - side.roundOf(b) || side.toOf(a) - side.toOf(b));
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
  for (const message of messages) {
    const node = side.toOf(message);
    const ancestor = drawnAncestor.get(side.fromOf(message)) ?? 0;
    if (side.crosses(message)) ++crossings;
    const parent = indexOf.get(side.fromOf(message));
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
