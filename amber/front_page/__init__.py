"""Make the front page of the admin, and its side bar: is all well, and what is to be done?"""
