## Base of all kernels: dtype load/store functions, parameter macros, the error word and fast float math.
## A template inherits it; a generated kernel takes the same text from clnn.runtime.templates.preamble.
##
## Parameters
##   USE_FP64   bool   also the functions for double (set by the renderer when a dtype parameter is computed in double)
##   DEV        Device or None: what the kernel is rendered for
##   COMMON     the text of the base as rendered before, or None: it depends on USE_FP64 alone, and to render it takes longer than most kernels do
##
## The line "//: body" ends the base: sources that are built together share what stands before it (clnn.runtime.assemble).
## Lines "//@ name ..." start a function that is dropped when nothing later mentions one of its names; "//@" alone ends that.
% if COMMON is None:
<%include file="/common/storage.cl.mako"/>
<%include file="/common/math.cl.mako"/>
<%include file="/common/trig.cl.mako"/>
<%include file="/common/inverse.cl.mako"/>
<%include file="/common/pow.cl.mako"/>
<%include file="/common/double.cl.mako"/>
<%include file="/common/double_trig.cl.mako"/>
<%include file="/common/double_special.cl.mako"/>
<%include file="/common/arithmetic.cl.mako"/>
<%include file="/common/complex.cl.mako"/>
<%include file="/common/special.cl.mako"/>
<%include file="/common/bessel.cl.mako"/>
<%include file="/common/polynomials.cl.mako"/>
<%include file="/common/random.cl.mako"/>
<%include file="/common/draws.cl.mako"/>
<%include file="/common/sequence.cl.mako"/>
<%include file="/common/gamma.cl.mako"/>
//@
//: body ${int(USE_FP64)}
% else:
${COMMON}\
% endif
% if hasattr(next, 'body'):  # a plain preamble is rendered without a child
${next.body()}
% endif
