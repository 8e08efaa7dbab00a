"""Pass: one block for every factor, each with its operator and the reason for it.

The rules, in order: a factor that touches one random variable conjugately is exact under every method; constraints,
truth tables and linear-Gaussian parts are EP; scalar links are EP where their argument is linear in Gaussians and the
outcome can speak EP; everything else is VMP where conjugate and NCVMP where not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from ..factors import LINKS
from ..factors.derived import completed
from ..factors.domains import real
from ..factors.errors import UnsupportedError
from ..factors.factor import VECTOR_LINKS, Chain, Switch, Term
from ..factors.gaussian_process import NAME as PROCESS
from . import slots
from .chains import chain_block, degree_in
from .conditional_tables import switch_table, table
from .coupled import coupled_site
from .expectations import better_by_ep, no_moments, not_independent
from .expressions import Apply, Constant, Expr, Gather, Let, Random, inside, parents, union_plates, unnamed
from .graph import Block, Gate, Graph, LinearTerm
from .inner_products import in_turn
from .known import known_in, latent_names, ungathered
from .linear import element_of, linear_form
from .logic import constraint_blocks, ep_or_power, let_block
from .methods import EXACT, NCVMP, VMP, Method
from .partly import split, split_expression
from .polynomial import curved
from .processes import process_block

ZERO = Constant(np.array(0.0), (), real)
MINUS_ONE = Constant(np.array(-1.0), (), real)


def choose(graph: Graph) -> Graph:
    """Makes the blocks of all needed factors."""
    blocks: list[Block] = []
    for name, node in graph.model.randoms.items():
        if name in graph.needed:
            blocks.extend(split(graph, node, _random_blocks))
    for name, expression in graph.model.constraints.items():
        blocks.extend(split_expression(graph, name, expression, partial(constraint_blocks, graph, name)))
    for name, node in graph.model.lets.items():
        if name in graph.observed and not known_in(graph)(node.expression):
            blocks.extend(split_expression(graph, name, node.expression, partial(_let_blocks, graph, node)))
    lets = _with_their_lets(graph, blocks)
    return dataclasses.replace(graph, blocks=tuple(blocks), latent={**graph.latent, **lets})


def _let_blocks(graph: Graph, node: Let, expression: Expr) -> list[Block]:
    """The block of an observed expression, also as it reads in a case of it."""
    if known_in(graph)(expression):
        return []
    read = node if expression is node.expression else dataclasses.replace(node, expression=expression)
    return [dataclasses.replace(let_block(graph, read), out=node)]


def _with_their_lets(graph: Graph, blocks: list[Block]) -> dict[str, Let]:
    """Named discrete expressions that tables and sites speak to get a belief and a block of their own.

    Such a block may need further ones.
    """
    found: dict[str, Let] = {}
    queue = list(blocks)
    while queue:
        block = queue.pop(0)
        known = known_in(graph)
        selectors = (gate.selector for gate in block.gates if block.kind != "energy" or compares(gate.selector, known))
        for atom in (*block.atoms, *selectors):
            root = ungathered(atom)
            if isinstance(root, Let) and root.name not in found and root.name not in graph.observed:
                found[root.name] = root
                fresh = let_block(graph, root)
                blocks.append(fresh)
                queue.append(fresh)
    return found


def compares(selector: Expr, known: Callable[[Expr], bool]) -> bool:
    """Whether a gate opens by a named comparison of real numbers, which has a belief of its own under EP only."""
    root = ungathered(selector)
    if not isinstance(root, Let) or known(root):
        return False
    return any(
        isinstance(node, Apply) and node.op == "greater" and not known(node) for node in inside([root.expression])
    )


def _random_blocks(graph: Graph, node: Random, generated: Term | Switch | Chain) -> list[Block]:
    if isinstance(generated, Chain):
        return [chain_block(graph, node)]
    if isinstance(generated, Term):
        return [_term_block(graph, node, generated, ())]
    cases = len(generated.terms)
    selector = generated.selector
    method = graph.method_of(node.name)
    if (summed := switch_table(graph, node, generated, method)) is not None:
        return [summed]
    if method.name in ("ep", "power") and latent_names(graph, [node, *parents(node)]):
        return [slots.switch_block(graph, node, method)]
    blocks = []
    for number, term in enumerate(generated.terms):
        # The cases of a boolean are written true first; as class numbers true is 1.
        state = cases - 1 - number if selector.domain.kind == "boolean" else number
        block = _term_block(graph, node, term, (Gate(selector, case=state),))
        blocks.append(dataclasses.replace(block, name=f"{node.name} (case {number})"))
    lacking = next((block.reason for block in blocks if block.kind == "slots"), None)
    return blocks if lacking is None else [_switch_by_ep(graph, node, method, lacking)]


def _switch_by_ep(graph: Graph, node: Random, method: Method, lacking: str) -> Block:
    """The whole switch, of which VMP cannot average a case."""
    try:
        return dataclasses.replace(slots.switch_block(graph, node, method), reason=lacking)
    except UnsupportedError as refusal:
        raise UnsupportedError(f"{refusal} Nor has VMP an operator for it: {lacking}.") from None


def _term_block(graph: Graph, node: Random, term: Term, gates: tuple[Gate, ...]) -> Block:
    known = known_in(graph)
    method = graph.method_of(node.name)
    exprs = {"out": node, **term.args}
    for edge, reason in term.factor.unsupported.items():
        if not known(exprs[edge]) and method.name in ("vmp", "ncvmp"):
            what = "the outcome" if edge == "out" else f"the argument {edge}='{exprs[edge]}'"
            raise UnsupportedError(f"'{node.name}': {what} of {term.factor.name} is random, and {reason}.")
    random = [edge for edge, expr in exprs.items() if not known(expr)]
    if term.factor.name == PROCESS:
        return process_block(graph, node, random)
    factor = completed(term.factor, random, node.domain.kind)
    # A selector may itself be an element that a random index chooses.
    gates = gates + tuple(index_gates([*term.args.values(), *(gate.selector for gate in gates)], known))
    selectors = [gate.selector for gate in gates]
    compared = {root.name: root for e in selectors if isinstance(root := ungathered(e), Let) and compares(e, known)}
    mean_field = [selector for selector in selectors if not compares(selector, known)]
    latent = (*latent_names(graph, [node, *term.args.values(), *mean_field]), *compared)
    plates = union_plates(node.plates, *((gate.axis,) for gate in gates if gate.axis))
    base = Block(node.name, "energy", VMP, "", "", "", plates, latent, node, factor, term.args, gates)
    if not latent:
        return dataclasses.replace(
            base,
            method=EXACT,
            operator=f"{term.factor.name} density",
            accuracy="exact",
            reason="all of it is observed",
            constant=True,
        )
    for rule in (_conjugate, table, _site):
        block = rule(graph, base, method, known)
        if block is not None:
            return block
    return _slots(graph, base, method, known) or _energy(graph, base, method, known)


def _slots(graph: Graph, block: Block, method: Method, known) -> Block | None:
    """EP by quadrature where it was asked for, where VMP has no rule, and where it is better and has an operator."""
    if method.name in ("ep", "power"):
        return slots.term_block(graph, block, method, "asked for")
    if method.name != "auto":
        return None
    lacking = _lacking(block, known)
    # Under a gate EP matches the moments of all cases at once, and components that start alike stay alike.
    args = block.args.values()
    reason = lacking or ("" if block.gates else not_independent(args, known) or better_by_ep(args, known))
    if not reason:
        return None
    try:
        return slots.term_block(graph, block, method, reason)
    except UnsupportedError as refusal:
        if not lacking:
            return None
        raise UnsupportedError(f"{refusal} Nor has VMP an operator for it: {lacking}.") from None


def _lacking(block: Block, known) -> str:
    """Why VMP cannot serve a factor; nothing where it can."""
    fixed = [edge for edge in block.factor.unsupported if not known({"out": block.out, **block.args}[edge])]
    if fixed:
        return f"VMP has no expectation for a random {' and '.join(fixed)} of {block.factor.name}"
    edges = {"out": block.out.domain.kind, **block.factor.edges}
    exprs = {"out": block.out, **block.args}
    silent = no_moments(((exprs[edge], kind) for edge, kind in edges.items()), known)
    return f"VMP has no moments of {silent}" if silent is not None else ""


def index_gates(args: Iterable[Expr], known: Callable[[Expr], bool]) -> list[Gate]:
    """One gate for every random variable that indexes an argument."""
    gates: dict[int, Gate] = {}
    for node in inside(args):
        if isinstance(node, Gather) and not known(node.index):
            gates[id(node.index)] = Gate(node.index, axis=node.axis)
    return list(gates.values())


def _conjugate(graph: Graph, block: Block, method: Method, known) -> Block | None:
    """One random argument, in the statistics of its own family: the message is the same under every divergence."""
    random = [(edge, arg) for edge, arg in (("out", block.out), *block.args.items()) if not known(arg)]
    if _chosen_data(block, known):
        reason = "a random index chooses among known densities: linear in its probabilities, the same under EP and VMP"
        operator = f"{block.factor.name} densities by case"
        return dataclasses.replace(
            block, method=EXACT, operator=operator, accuracy="exact", reason=reason, constant=True
        )
    open_ = all(known(gate.selector) for gate in block.gates)  # a known gate is a weight of zero or one
    if not open_ or len(random) != 1 or random[0][0] not in block.factor.conjugate:
        return None
    argument = random[0][1]
    plain = element_of(argument, known) is not None
    if not plain:
        form = linear_form(argument, known) if argument.domain.kind == "real" else None
        if (form is None or len(form.terms) != 1) and not _linear_vector(graph, argument):
            return None
    what = "prior" if argument is block.out else "conjugate message"
    reason = f"touches one random variable conjugately ({what}): the same under EP and VMP"
    return dataclasses.replace(
        block, method=EXACT, operator=f"{block.factor.name} closed form", accuracy="exact", reason=reason, constant=True
    )


def _chosen_data(block: Block, known) -> bool:
    """One random index, and everything that it chooses from is data."""
    if len(block.gates) != 1 or len(block.latent) != 1 or not known(block.out):
        return False
    selector = block.gates[0].selector
    return not isinstance(selector, Let) and element_of(selector, known) is not None


def _linear_vector(graph: Graph, argument: Expr) -> bool:
    """A vector that is linear in one random vector, element by element."""
    names = latent_names(graph, [argument])
    return (
        argument.domain.kind == "vector"
        and len(names) == 1
        and graph.latent[names[0]].domain.kind == "vector"
        and degree_in(argument, graph.latent[names[0]]) == 1
    )


def _site(graph: Graph, block: Block, method: Method, known) -> Block | None:
    """A scalar function of a linear form of Gaussians."""
    if method.name in ("vmp", "ncvmp") or block.gates:
        return None
    if block.factor.name == "gaussian":
        return _gaussian_site(block, method, known)
    argument = next(map(unnamed, block.args.values()), None)
    if isinstance(argument, Apply) and argument.op in VECTOR_LINKS:
        return coupled_site(block, argument, method, known)
    if not isinstance(argument, Apply) or argument.op not in block.factor.sites:
        return None
    form = linear_form(argument.args[0], known)
    observed = known(block.out)
    if form is None or not (observed or block.out.domain.kind == "boolean"):
        return None
    if len(block.args) > 1:  # a site reads its link alone; slots read the other arguments too, such as a dispersion
        if not observed or not all(known(arg) for arg in list(block.args.values())[1:]):
            return None
        reason = "scalar link of a linear form with known parameters: EP is the most accurate"
        return slots.term_block(graph, block, ep_or_power(method), reason)
    closed = argument.op == "probit" and method.alpha == 1.0
    return dataclasses.replace(
        block,
        kind="site",
        method=ep_or_power(method),
        operator=f"{block.factor.name}({argument.op}) site, "
        + ("closed form" if closed else "80-point stretched quadrature"),
        accuracy="exact moments" if closed else "quadrature",
        reason="scalar link of a linear form, and every neighbour is Gaussian: EP is the most accurate",
        link=argument.op,
        form=form,
        atoms=() if observed else (block.out,),
    )


def _gaussian_site(block: Block, method: Method, known) -> Block | None:
    if not known(block.args["precision"]):
        return None
    form = linear_form(block.args["mean"], known)
    if form is None:
        return None
    out = block.out
    if not known(out):
        form = dataclasses.replace(form, terms=(*form.terms, LinearTerm(out, out, (MINUS_ONE,))))
    form = dataclasses.replace(form, noise=(((), block.args["precision"]),))
    return dataclasses.replace(
        block,
        kind="site",
        method=ep_or_power(method),
        operator="linear-Gaussian site, closed form",
        accuracy="exact",
        reason="linear in Gaussian variables with known precision: EP is Gaussian belief propagation",
        form=form,
        out=out if known(out) else ZERO,
    )


def _energy(graph: Graph, block: Block, method: Method, known) -> Block:
    """VMP, or NCVMP where a link makes the factor non-conjugate."""
    links = _links(block.args.values(), known)
    names = {name for name, _ in links}
    if method.bound is not None and not any(method.bound in LINKS[name].bounds for name in names):
        offers = "; ".join(f"{name}: {', '.join(LINKS[name].bounds)}" for name in sorted(names)) or "no link in it"
        raise UnsupportedError(f"'{block.name}' has no bound {method.bound!r}. It offers {offers}.")
    turns = in_turn(block)
    others = [arg for edge, arg in block.args.items() if not turns or edge != "mean"]
    plain = _not_conjugate(block, known) + curved(others, known)
    if not links and not plain:
        why = (
            f"an inner product: conjugate, the elements of {' and '.join(turns)} taking turns"
            if turns
            else "gated: the expected log density is weighted by the gate's probabilities"
            if block.gates
            else _why_vmp(block, known)
        )
        return dataclasses.replace(
            block, method=VMP, operator=f"{block.factor.name} expected log density", accuracy="exact", reason=why
        )
    bounds = {name: _bound(name, method) for name in sorted(names)}
    accuracy = {LINKS[name].bounds[bound] for name, bound in bounds.items()} | ({block.factor.accuracy} - {"exact"})
    chosen = ", ".join(f"{name}: {bound}" for name, bound in bounds.items())
    why = (
        "a link of a vector: NCVMP, since EP would need an integral over all classes"
        if names & set(VECTOR_LINKS)
        else f"the factor is not conjugate in {', '.join(plain)}"
        if plain and not links
        else ("asked for" if method.name in ("vmp", "ncvmp") else "a link whose neighbours do not all speak EP")
    )
    return dataclasses.replace(
        block,
        method=dataclasses.replace(NCVMP, bound=method.bound),
        operator=f"{block.factor.name} expected log density" + (f" ({chosen})" if chosen else ""),
        accuracy=", ".join(sorted(accuracy)) or "as its expected log density",
        reason=why,
    )


def _not_conjugate(block: Block, known) -> list[str]:
    """The random edges in which the factor is not declared conjugate."""
    edges = (("out", block.out), *block.args.items())
    return [edge for edge, arg in edges if edge not in block.factor.conjugate and not known(arg)]


def _bound(link: str, method: Method) -> str:
    """The bound asked for where the link has it, else the link's default."""
    offered = LINKS[link].bounds
    return method.bound if method.bound is not None and method.bound in offered else next(iter(offered))


def _why_vmp(block: Block, known) -> str:
    if block.out.domain.kind in ("boolean", "category"):
        return "an outcome with random probabilities: conjugate under VMP"
    return "a random scale or a product of random variables: conjugate under VMP, multimodal under EP"


def _links(args, known) -> list[tuple[str, Expr]]:
    found, stack = [], list(args)
    while stack:
        node = stack.pop()
        if known(node):
            continue
        if isinstance(node, Apply) and node.op in LINKS:
            found.append((node.op, node))
        if not isinstance(node, Random):
            stack.extend(parents(node))
    return found
