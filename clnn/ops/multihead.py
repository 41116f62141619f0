"""``multi_head_attention_forward``: projections, scaled dot-product attention and the output projection."""
