"""The moment ladder: what each discriminator head can see."""
