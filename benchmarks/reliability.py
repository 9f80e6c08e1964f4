def write_page(known):
    pass
