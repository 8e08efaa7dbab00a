"""Pass: one block for every factor, each with its operator and the reason for it.

The rules, in order: a factor that touches one random variable conjugately is exact under every method; constraints,
truth tables and linear-Gaussian parts are EP; scalar links are EP where their argument is linear in Gaussians and the
outcome takes EP messages; everything else is VMP where conjugate and NCVMP where not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial

import numpy as np

from ...factors import LINKS
from ...factors.domains import real
from ...factors.errors import UnsupportedError
from ...factors.factor import RUNNING_LINKS, VECTOR_LINKS, Chain, Switch, Term
from ...factors.quadrature.derived import MOST_SCALARS, accuracy_over, completed
from ...factors.roles import LinearGaussian, Process, ScalarGaussian, gaussian_arguments
from ..algebra.composed import composition
from ..algebra.degree import degree_in
from ..algebra.has_moments import better_by_ep, no_moments, not_independent, random_elements
from ..algebra.increasing import is_increasing
from ..algebra.inner_products import in_turn
from ..algebra.known import known_in, latent_names, ungathered
from ..algebra.linear import element_of, linear_form
from ..algebra.link_bounds import check_bound, links_in, offers
from ..algebra.polynomial import curved
from ..blocks.base import Block, Choice, Gate, SwitchCase
from ..blocks.energy import EnergyBlock
from ..blocks.site import LinearTerm, SiteBlock
from ..blocks.slots import SlotsBlock
from ..graph import Draft
from ..language.nodes import (
    Apply,
    Constant,
    Expr,
    Gather,
    IsData,
    Let,
    Random,
    applies,
    counts,
    inside,
    parents,
    union_plates,
    unnamed,
)
from ..language.operations import GREATER, INVERSE, OVER_CLASSES, WHERE
from ..methods import EXACT, NCVMP, VMP, Method
from ..rules import slots
from ..rules.chain import chain_blocks
from ..rules.conditional_tables import switch_table, table
from ..rules.coupled_site import coupled_site
from ..rules.gaussian_process import process_block
from ..rules.logic import constraint_blocks, ep_or_power, let_block
from ..rules.maximum import noisy_maximum
from ..rules.mixture import mixtures
from ..rules.pairs import paired
from ..rules.slot_finder import beside, is_integrable
from .missing_entries import split, split_expression

ZERO = Constant(np.array(0.0), (), real)
MINUS_ONE = Constant(np.array(-1.0), (), real)
OPEN = Choice(VMP, "", "", "")  # of a term whose rule has not been found yet


def choose(draft: Draft) -> Draft:
    """Makes the blocks of all needed factors."""
    mixed = mixtures(draft)
    summed = {block.selector.name: block for block in mixed if not block.kept}
    beside = {block.name: block for block in mixed if block.kept}
    gated = {term.name for block in mixed for term in block.terms}
    blocks: list[Block] = []
    for name, node in draft.model.randoms.items():
        if name in summed:
            blocks.append(summed[name])
        elif name in beside:
            blocks.append(beside[name])
        elif name in draft.needed and name not in gated:
            blocks.extend(split(draft, node, _random_blocks))
    for name, expression in draft.model.constraints.items():
        blocks.extend(split_expression(draft, name, expression, partial(constraint_blocks, draft, name)))
    for name, node in draft.model.lets.items():
        if name in draft.observed and not known_in(draft)(node.expression):
            blocks.extend(split_expression(draft, name, node.expression, partial(_let_blocks, draft, node)))
    lets = _with_their_lets(draft, blocks)
    check_bound(draft, blocks)
    latent = {name: node for name, node in {**draft.latent, **lets}.items() if name not in summed}
    return dataclasses.replace(draft, blocks=tuple(blocks), latent=latent)


def _let_blocks(draft: Draft, node: Let, expression: Expr) -> list[Block]:
    """The block of an observed expression, also as it reads in a case of it."""
    if known_in(draft)(expression):
        return []
    read = node if expression is node.expression else dataclasses.replace(node, expression=expression)
    return [dataclasses.replace(let_block(draft, read), out=node)]


def _with_their_lets(draft: Draft, blocks: list[Block]) -> dict[str, Let]:
    """Named discrete expressions to which tables and sites send messages get a belief and a block of their own.

    Such a block may need further ones.
    """
    found: dict[str, Let] = {}
    queue = list(blocks)
    while queue:
        block = queue.pop(0)
        known = known_in(draft)
        selectors = (gate.selector for gate in block.gates if compares(gate.selector, known))
        for atom in (*block.atoms, *selectors):
            root = ungathered(atom)
            if isinstance(root, Let) and root.name not in found and root.name not in draft.observed:
                found[root.name] = root
                fresh = let_block(draft, root)
                blocks.append(fresh)
                queue.append(fresh)
    return found


def compares(selector: Expr, known: IsData) -> bool:
    """Whether a gate opens by a named comparison or count, which has a belief of its own: VMP averages neither."""
    root = ungathered(selector)
    if not isinstance(root, Let) or known(root):
        return False
    return any((applies(node, GREATER) or counts(node)) and not known(node) for node in inside([root.expression]))


def _random_blocks(draft: Draft, node: Random, generated: Term | Switch | Chain) -> list[Block]:
    if isinstance(generated, Chain):
        return chain_blocks(draft, node)
    if not known_in(draft)(node):  # what nobody looks at is not censored
        generated = generated.uncensored
    if isinstance(generated, Term) and draft.method_of(node.name).name not in ("ep", "power"):
        generated = _switched_by_data(generated, known_in(draft))
    if isinstance(generated, Term):
        return [_term_block(draft, node, generated, ())]
    cases = len(generated.terms)
    selector = generated.selector
    method = draft.method_of(node.name)
    if (summed := switch_table(draft, node, generated, method)) is not None:
        return [summed]
    if method.name in ("ep", "power") and latent_names(draft, [node, *parents(node)]):
        return [slots.switch_block(draft, node, method)]
    blocks = []
    for number, term in enumerate(generated.terms):
        # The cases of a boolean are written true first; as class numbers true is 1.
        state = cases - 1 - number if selector.domain.is_boolean else number
        block = _term_block(draft, node, term, (Gate(selector, case=state),))
        case = SwitchCase(node.name, number)
        blocks.append(dataclasses.replace(block, name=str(case), case=case))
    lacking = next((block.choice.reason for block in blocks if isinstance(block, SlotsBlock)), None)
    return blocks if lacking is None else [_switch_by_ep(draft, node, method, lacking)]


def _switched_by_data(term: Term, known: IsData) -> Term | Switch:
    """A term with a positive argument that data choose is one of two terms, each with an argument of its own."""
    for edge, arg in term.args.items():
        root = unnamed(arg)
        if applies(root, WHERE) and root.domain.is_bounded and known(root.args[0]) and not known(root):
            condition, *sides = root.args
            return Switch(condition, tuple(dataclasses.replace(term, args={**term.args, edge: e}) for e in sides))
    return term


def _switch_by_ep(draft: Draft, node: Random, method: Method, lacking: str) -> SlotsBlock:
    """The whole switch, of which VMP cannot average a case."""
    try:
        return slots.switch_block(draft, node, method).chosen(reason=lacking)
    except UnsupportedError as refusal:
        raise beside(refusal, lacking) from None


def _term_block(draft: Draft, variable: Random, term: Term, gates: tuple[Gate, ...]) -> Block:
    known = known_in(draft)
    method = draft.method_of(variable.name)
    node, term = paired(draft, variable, term)
    exprs = {"out": node, **term.args}
    for edge, reason in term.factor.unsupported.items():
        if not known(exprs[edge]) and not is_increasing(exprs[edge]) and method.name in ("vmp", "ncvmp"):
            what = "the outcome" if edge == "out" else f"the argument {edge}='{exprs[edge]}'"
            raise UnsupportedError(f"'{variable.name}': {what} of {term.factor.name} is random, and {reason}.")
    random = [edge for edge, expr in exprs.items() if not known(expr)]
    if isinstance(term.factor.role, Process):
        return process_block(draft, variable, random)
    factor = completed(term.factor, random, node.domain.kind)
    # A selector may itself be an element that a random index chooses.
    gates = gates + tuple(index_gates([*term.args.values(), *(gate.selector for gate in gates)], known))
    selectors = [gate.selector for gate in gates]
    compared = {root.name: root for e in selectors if isinstance(root := ungathered(e), Let) and compares(e, known)}
    mean_field = [selector for selector in selectors if not compares(selector, known)]
    latent = (*latent_names(draft, [node, *term.args.values(), *mean_field]), *compared)
    plates = union_plates(variable.plates, *((gate.axis,) for gate in gates if gate.axis))
    base = EnergyBlock(
        name=variable.name,
        plates=plates,
        latent=latent,
        choice=OPEN,
        out=node,
        factor=factor,
        args=term.args,
        gates=gates,
    )
    if not latent:
        choice = Choice(EXACT, f"{term.factor.name} density", "exact", "all of it is observed")
        return dataclasses.replace(base, choice=choice, constant=True)
    for rule in (_conjugate, table, noisy_maximum, _site):
        block = rule(draft, base, method, known)
        if block is not None:
            return block
    return _slots(draft, base, method, known) or _energy(draft, base, method, known)


def _slots(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> SlotsBlock | None:
    """EP by quadrature where it was asked for, where VMP has no rule, and where it is better and has an operator."""
    if method.name in ("ep", "power"):
        return slots.term_block(draft, block, method, "asked for")
    if method.name != "auto":
        return None
    lacking = _lacking(block, known)
    # Under a gate EP matches the moments of all cases at once, and components that start alike stay alike.
    args = block.args.values()
    better = not_independent(args, known) or better_by_ep(args, known) or _no_average(block, known)
    reason = lacking or ("" if block.gates else better)
    if not reason:
        return None
    try:
        return slots.term_block(draft, block, method, reason)
    except UnsupportedError as refusal:
        if not lacking or _composed(block, known) is not None:
            return None
        raise beside(refusal, lacking) from None


def _composed(block: EnergyBlock, known: IsData) -> EnergyBlock | None:
    """NCVMP over the numbers that the arguments are composed of, where no rule gives moments of the arguments."""
    if _fixed(block, known) or block.gates:
        return None
    lacking = _no_moments(block, known)
    lacking = _kept_in_order(block, known) if lacking is None else lacking
    if lacking is None:
        return None
    composed = composition([block.out, *block.args.values()], known)
    if composed is None:
        return None
    numbers = ", ".join(map(str, composed.numbers))
    accuracy = accuracy_over([number.domain.kind for number in composed.numbers])
    operator = f"{block.factor.name} expected log density over {numbers}"
    reason = f"{lacking} has no moments in closed form: its density is averaged over {numbers}"
    return dataclasses.replace(block, composed=composed, choice=Choice(NCVMP, operator, accuracy, reason))


def _kept_in_order(block: EnergyBlock, known: IsData) -> Expr | None:
    """The random cutpoints of a factor, whose moments as a vector would not keep their order."""
    return next((block.args[e] for e in block.factor.unsupported if e in block.args and not known(block.args[e])), None)


def _no_average(block: EnergyBlock, known: IsData) -> str:
    """Why EP is tried first for a density without a declared average: few scalars are integrated over their cavities.

    The average of a density that falls faster than a belief (exp of a square, a Weibull) is infinite or all tail. Of a
    linear form in several variables the belief that they share under VMP counts for more.
    """
    inside = [random_elements(arg, known) for arg in block.args.values()]
    scalars = all(is_integrable(variable.domain) for found in inside for variable, _ in found)
    few = len(set().union(*inside)) <= MOST_SCALARS and all(len(found) <= 1 for found in inside)
    if not block.factor.derived or not known(block.out) or not scalars or not few:
        return ""
    return "its density has no declared average: EP integrates it over the few scalars that are random"


def _lacking(block: EnergyBlock, known: IsData) -> str:
    """Why VMP cannot serve a factor; nothing where it can."""
    if fixed := _fixed(block, known):
        reasons = "; ".join(block.factor.unsupported[edge] for edge in fixed)
        return f"VMP has no expectation for a random {' and '.join(fixed)} of {block.factor.name}: {reasons}"
    found = _no_moments(block, known)
    return "" if found is None else f"VMP has no moments of {found}"


def _fixed(block: EnergyBlock, known: IsData) -> list[str]:
    """The random arguments that VMP refuses: cutpoints are not, that keep their order by their form."""
    exprs = {"out": block.out, **block.args}
    return [edge for edge in block.factor.unsupported if not known(exprs[edge]) and not is_increasing(exprs[edge])]


def _no_moments(block: EnergyBlock, known: IsData) -> Expr | None:
    """The first expression of a factor of which no rule gives the moments."""
    exprs = {"out": block.out, **block.args}
    edges = {"out": block.out.domain.kind, **block.factor.edges}
    return no_moments(((exprs[edge], kind) for edge, kind in edges.items()), known)


def index_gates(args: Iterable[Expr], known: IsData) -> list[Gate]:
    """One gate for every random variable that indexes an argument."""
    gates: dict[int, Gate] = {}
    for node in inside(args):
        if isinstance(node, Gather) and not known(node.index):
            gates[id(node.index)] = Gate(node.index, axis=node.axis)
    return list(gates.values())


def _conjugate(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> EnergyBlock | None:
    """One random argument, in the statistics of its own family: the message is the same under every divergence."""
    random = [(edge, arg) for edge, arg in (("out", block.out), *block.args.items()) if not known(arg)]
    if _chosen_data(block, known):
        reason = "a random index chooses among known densities: linear in its probabilities, the same under EP and VMP"
        operator = f"{block.factor.name} densities by case"
        return dataclasses.replace(block, choice=Choice(EXACT, operator, "exact", reason), constant=True)
    open_ = all(known(gate.selector) for gate in block.gates)  # a known gate is a weight of zero or one
    if not open_ or len(random) != 1 or random[0][0] not in block.factor.conjugate:
        return None
    argument = random[0][1]
    plain = element_of(argument, known) is not None
    if not plain:
        form = linear_form(argument, known) if argument.domain.is_real else None
        alone = form is not None and len(form.terms) == 1 and form.terms[0].over is None
        if not alone and not _linear_vector(draft, argument):
            return None
    what = "prior" if argument is block.out else "conjugate message"
    reason = f"touches one random variable conjugately ({what}): the same under EP and VMP"
    choice = Choice(EXACT, f"{block.factor.name} closed form", "exact", reason)
    return dataclasses.replace(block, choice=choice, constant=True)


def _chosen_data(block: EnergyBlock, known: IsData) -> bool:
    """One random index, and everything that it chooses from is data."""
    if len(block.gates) != 1 or len(block.latent) != 1 or not known(block.out):
        return False
    selector = block.gates[0].selector
    return not isinstance(selector, Let) and element_of(selector, known) is not None


def _linear_vector(draft: Draft, argument: Expr) -> bool:
    """A vector that is linear in one random vector, element by element."""
    names = latent_names(draft, [argument])
    return (
        argument.domain.is_vector
        and len(names) == 1
        and draft.latent[names[0]].domain.is_vector
        and degree_in(argument, draft.latent[names[0]]) == 1
    )


def _site(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> SiteBlock | SlotsBlock | None:
    """A scalar function of a linear form of Gaussians."""
    if method.name in ("vmp", "ncvmp") or block.gates:
        return None
    if isinstance(block.factor.role, ScalarGaussian):
        return _gaussian_site(block, method, known)
    argument = next(map(unnamed, block.args.values()), None)
    if applies(argument, *OVER_CLASSES):
        return coupled_site(block, argument, method, known)
    if not isinstance(argument, Apply) or argument.op not in block.factor.sites:
        return None
    form = linear_form(argument.args[0], known)
    observed = known(block.out)
    if form is None or not (observed or block.out.domain.is_boolean):
        return None
    if len(block.args) > 1:  # a site reads its link alone; slots read the other arguments too, such as a dispersion
        if not observed or not all(known(arg) for arg in list(block.args.values())[1:]):
            return None
        reason = "scalar link of a linear form with known parameters: EP is the most accurate"
        return slots.term_block(draft, block, ep_or_power(method), reason)
    closed = argument.op in block.factor.closed_sites and method.alpha == 1.0
    rule, accuracy = ("closed form", "exact moments") if closed else ("80-point stretched quadrature", "quadrature")
    reason = "scalar link of a linear form, and every neighbour is Gaussian: EP is the most accurate"
    return block.remade(
        SiteBlock,
        choice=Choice(ep_or_power(method), f"{block.factor.name}({argument.op}) site, {rule}", accuracy, reason),
        factor=block.factor,
        link=argument.op,
        form=form,
        atoms=() if observed else (block.out,),
    )


def _gaussian_site(block: EnergyBlock, method: Method, known: IsData) -> SiteBlock | None:
    mean, precision = gaussian_arguments(block)
    if not known(precision):
        return None
    form = linear_form(mean, known)
    if form is None:
        return None
    out = block.out
    if not known(out):
        form = dataclasses.replace(form, terms=(*form.terms, LinearTerm(out, out, (MINUS_ONE,))))
    form = dataclasses.replace(form, noise=(((), precision),))
    reason = "linear in Gaussian variables with known precision: EP is Gaussian belief propagation"
    choice = Choice(ep_or_power(method), "linear-Gaussian site, closed form", "exact", reason)
    return block.remade(SiteBlock, choice=choice, out=out if known(out) else ZERO, factor=block.factor, form=form)


def _energy(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> EnergyBlock:
    """VMP, or NCVMP where a link makes the factor non-conjugate."""
    if method.name != "vmp" and (composed := _composed(block, known)) is not None:
        return composed
    links = links_in(block.args.values(), known)
    own = block.name in draft.methods  # asked for by name
    if own and method.bound is not None and not any(method.bound in LINKS[name].bounds for name in links):
        raise UnsupportedError(f"'{block.name}' has no bound {method.bound!r}. {offers(links)}")
    turns = in_turn(block)
    role = block.factor.role
    mean = role.mean if turns and isinstance(role, LinearGaussian) else None  # its inner product is no curvature
    others = [arg for edge, arg in block.args.items() if edge != mean]
    plain = _not_conjugate(block, known) + curved(others, known)
    if not links and not plain:
        why = (
            f"an inner product: conjugate, the elements of {' and '.join(turns)} taking turns"
            if turns
            else "gated: the expected log density is weighted by the gate's probabilities"
            if block.gates
            else _why_vmp(block, known)
        )
        return dataclasses.replace(block, choice=Choice(VMP, f"{block.factor.name} expected log density", "exact", why))
    bounds = {name: _bound(name, method) for name in sorted(links)}
    accuracy = {LINKS[name].bounds[bound] for name, bound in bounds.items()} | ({block.factor.accuracy} - {"exact"})
    accuracy |= {"cubature" for arg in block.args.values() if applies(unnamed(arg), INVERSE) and not known(arg)}
    chosen = ", ".join(f"{name}: {bound}" for name, bound in bounds.items())
    why = (
        "a link of a vector: NCVMP, since EP would need an integral over all classes"
        if links & set(VECTOR_LINKS)
        else "a product along a plate: NCVMP, since EP would need an integral over all its factors"
        if links & set(RUNNING_LINKS)
        else f"the factor is not conjugate in {', '.join(plain)}"
        if plain and not links
        else ("asked for" if method.name in ("vmp", "ncvmp") else "a link whose neighbours do not all offer EP")
    )
    operator = f"{block.factor.name} expected log density" + (f" ({chosen})" if chosen else "")
    words = ", ".join(sorted(accuracy)) or "as its expected log density"
    return dataclasses.replace(
        block, choice=Choice(dataclasses.replace(NCVMP, bound=method.bound), operator, words, why)
    )


def _not_conjugate(block: EnergyBlock, known: IsData) -> list[str]:
    """The random edges in which the factor is not declared conjugate."""
    edges = (("out", block.out), *block.args.items())
    return [edge for edge, arg in edges if edge not in block.factor.conjugate and not known(arg)]


def _bound(link: str, method: Method) -> str:
    """The bound asked for where the link has it, else the link's default."""
    offered = LINKS[link].bounds
    return method.bound if method.bound is not None and method.bound in offered else next(iter(offered))


def _why_vmp(block: EnergyBlock, known: IsData) -> str:
    if block.out.domain.is_discrete:
        return "an outcome with random probabilities: conjugate under VMP"
    return "a random scale or a product of random variables: conjugate under VMP, multimodal under EP"
